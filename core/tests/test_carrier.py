"""A table and its options travel through Spark's options and come out as they went in."""

from dataclasses import replace

import pytest
from pyspark.sql.types import LongType, StringType, StructType
from streamcore import Column, OptionError, Secret, Table
from streamcore.reports import on_behalf_of
from streamcore.spark.carrier import JSON_OPTION, pack, unpack
from streamcore.spark.datasource import StreamcoreDataSource

TABLE = Table((Column("id", "BIGINT"), Column("name", "STRING")), "t")


def test_the_json_option_keeps_camel_case_and_the_table():
    options = {"connector": "kafka", "aws.credentials.role.sessionName": "s", "p": Secret("x")}
    carried = unpack(pack(options, replace(TABLE, reports="127.0.0.1:1/token")))
    assert carried.connector == "kafka"
    assert carried.options == {"aws.credentials.role.sessionName": "s", "p": "x"}
    assert replace(carried.table, reports="") == TABLE


def test_a_table_travels_with_the_name_of_the_job_it_is_read_for():
    with on_behalf_of("copies"):
        inside = unpack(pack({"connector": "kafka"}, TABLE))
    assert inside.table.job == "copies"
    assert unpack(pack({"connector": "kafka"}, TABLE)).table.job == ""


def test_the_json_option_has_a_name_that_spark_redacts():
    import re

    assert re.search("(?i)secret|password|token|access[.]?key", JSON_OPTION)


def test_plain_options_override_packed_ones_and_sparks_own_are_left_out():
    spark = {"path": "/x", "checkpointLocation": "/c", "queryname": "q"}
    carried = unpack({**pack({"connector": "a", "k": "1"}), "k": "2", **spark})
    assert carried.options == {"k": "2"}


def test_a_table_without_a_connector_is_told_so():
    with pytest.raises(OptionError) as caught:
        unpack({"topic": "t"})
    assert str(caught.value) == (
        "the table has 1 problem:\n"
        "  connector: required but missing; it names the plugin to use, such as 'kafka'\n"
        "Run 'streamcore list-plugins --kind connector' to see which are installed."
    )


def test_a_read_without_a_schema_is_told_so():
    with pytest.raises(OptionError, match=r"schema: required but missing; call \.schema"):
        StreamcoreDataSource({"connector": "kafka"}).schema()


def test_a_packed_table_gives_spark_its_schema():
    source = StreamcoreDataSource(pack({"connector": "kafka"}, TABLE))
    assert source.schema() == StructType().add("id", LongType()).add("name", StringType())


@pytest.mark.parametrize("text", ['{"options": {"password": "hunter2"', "[1]"])
def test_a_json_option_that_is_none_is_refused_and_not_shown(text):
    with pytest.raises(OptionError) as caught:
        unpack({JSON_OPTION: text, "connector": "kafka"})
    assert str(caught.value) == (
        "the table has 1 problem:\n"
        "  secret-options: is not the JSON that streamcore.spark.carrier.pack() makes"
    )
