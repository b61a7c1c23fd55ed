"""What cannot be inserted is refused before anything starts, with every reason at once."""

import pytest
from streamcore_sql import Session, SqlError

TABLES = """
CREATE TABLE source (id BIGINT, name STRING, price DOUBLE, ts TIMESTAMP(3)) WITH
  ('connector' = 'datagen', 'number-of-rows' = '3');
CREATE TABLE stream (id BIGINT, name STRING) WITH ('connector' = 'datagen');
CREATE TABLE sink (id BIGINT NOT NULL, name STRING, n INT, later AS id + 1) WITH
  ('connector' = 'blackhole');
CREATE TABLE topic (id BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 't',
  'format' = 'json', 'properties.bootstrap.servers' = 'h:1');
CREATE TABLE parted (id BIGINT, name STRING) PARTITIONED BY (name) WITH ('connector' = 'kafka',
  'topic' = 't', 'format' = 'json', 'properties.bootstrap.servers' = 'h:1');
CREATE TABLE days (id BIGINT, day STRING, n INT) PARTITIONED BY (day) WITH
  ('connector' = 'blackhole');
CREATE TABLE changed (id BIGINT, name STRING) WITH ('connector' = 'kafka', 'topic' = 'c',
  'format' = 'debezium-json', 'properties.bootstrap.servers' = 'h:1',
  'scan.startup.mode' = 'earliest-offset');
CREATE VIEW seen AS SELECT id FROM source;
"""


@pytest.fixture
def refused(spark):
    session = Session(spark)
    session.execute(TABLES)

    def run(statement):
        with pytest.raises(SqlError) as caught:
            session.execute(statement)
        assert session.jobs == []
        return str(caught.value)

    return run


def test_a_wrong_number_of_columns_lists_both_sides(refused):
    text = refused("INSERT INTO sink SELECT id FROM source")
    assert "the query gives 1 column, and 'sink' takes 3 columns" in text
    assert "It takes id, name, n; the query gives id." in text


def test_all_columns_of_another_type_are_named(refused):
    text = refused("INSERT INTO sink SELECT name, id, price FROM source")
    assert "id: the query's column 1 'name' is STRING, the table's is BIGINT" in text
    assert "name: the query's column 2 'id' is BIGINT, the table's is STRING" in text
    assert "n: the query's column 3 'price' is DOUBLE, the table's is INT" in text
    assert "CAST" in text


def test_a_column_list_must_name_columns_and_leave_out_none_that_is_not_null(refused):
    text = refused("INSERT INTO sink (nmae, later) SELECT name, id FROM source")
    assert "'sink' has no column 'nmae'" in text
    assert "Did you mean 'name'?" in text
    assert "column 'later' is computed" in text
    assert "id: is NOT NULL, but the INSERT leaves it out" in refused(
        "INSERT INTO sink (name) SELECT name FROM source"
    )


def test_partition_sets_columns_a_table_is_partitioned_by_and_no_other(refused):
    text = refused("INSERT INTO days PARTITION (n = 1, day = 'x', day = 'y') SELECT id FROM source")
    assert (
        "line 1, column 29: PARTITION sets column 'n', but 'days' is PARTITIONED BY (day)" in text
    )
    assert "line 1, column 47: column 'day' is filled twice" in text
    assert "Let the query give it: INSERT INTO days SELECT ..." in text
    text = refused("INSERT INTO sink PARTITION (n = 1) SELECT id, name FROM source")
    assert "line 1, column 29: PARTITION sets column 'n', but 'sink' is not partitioned" in text
    assert "'sink' has no column 'm'" in refused("INSERT INTO sink PARTITION (m = 1) SELECT 1, 'a'")


def test_rows_go_neither_into_views_nor_into_sources(refused):
    assert "'seen' is a view" in refused("INSERT INTO seen SELECT 1")
    assert "connector 'datagen' only reads" in refused("INSERT INTO stream SELECT 1, 'a'")


def test_a_sink_and_a_query_that_are_both_wrong_are_both_told(refused):
    text = refused("INSERT INTO stream SELECT id FROM sources")
    assert "only reads" in text
    assert "no table called 'sources'" in text


def test_changes_do_not_go_into_a_table_that_only_takes_inserts(refused):
    text = refused("INSERT INTO topic SELECT id, name FROM changed")
    assert (
        "table 'topic' ('kafka') only takes inserts, but 'changed' updates and deletes rows" in text
    )
    assert "Insert into a table that takes changes: 'upsert-kafka'" in text
    text = refused("INSERT INTO topic SELECT id, MAX(name) FROM stream GROUP BY id")
    assert "only takes inserts, but this query changes rows it has already given" in text


def test_a_topic_is_neither_overwritten_nor_written_by_partitions(refused):
    text = refused("INSERT OVERWRITE topic SELECT id, name FROM stream")
    assert "a stream cannot be overwritten" in text
    text = refused("INSERT INTO parted SELECT id, name FROM stream")
    assert (
        "PARTITIONED BY: Kafka chooses a row's partition by its key or 'sink.partitioner', "
        "not by columns; remove it" in text
    )
