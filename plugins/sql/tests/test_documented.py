from pathlib import Path

import pytest
from streamcore_sql import parse
from streamcore_sql.render import create_table
from streamcore_sql.statements import CreateTable, Insert, MetadataColumn

STATEMENTS = parse((Path(__file__).parent / "documented.sql").read_text())
TABLES = {str(s.name): s for s in STATEMENTS if isinstance(s, CreateTable)}


def test_every_documented_statement_is_read():
    assert len(TABLES) == 18
    assert [str(s.table) for s in STATEMENTS if isinstance(s, Insert)] == [
        "order_events_sink",
        "pageviews_per_region",
    ]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_a_documented_table_survives_show_create_table(table):
    assert parse(create_table(table)) == [table]


def test_metadata_columns_know_their_key():
    columns = TABLES["with_format_metadata"].columns
    keys = {c.name: (c.key, c.virtual) for c in columns if isinstance(c, MetadataColumn)}
    assert keys == {
        "event_time": ("value.source.timestamp", True),
        "origin_table": ("value.source.table", True),
        "partition_id": ("partition", True),
        "offset": ("offset", True),
    }


def test_backslashes_in_options_are_kept():
    options = {option.key: option.value for option in TABLES["sasl_plain"].options}
    jaas = options["properties.sasl.jaas.config"]
    assert jaas.endswith(r"required username=\"username\" password=\"password\";")


def test_a_watermark_is_kept_as_written():
    watermark = TABLES["user_events"].watermark
    assert str(watermark.column) == "event_ts"
    assert watermark.expression.text == "event_ts - INTERVAL '5' SECOND"


def test_partition_columns_are_kept_in_order():
    assert [str(c) for c in TABLES["KinesisTable"].partitioned_by] == ["user_id", "item_id"]


def test_queries_are_kept_verbatim():
    insert = next(s for s in STATEMENTS if isinstance(s, Insert))
    assert insert.query.text == (
        "SELECT order_id, product, amount, created_at\nFROM orders_source\nWHERE amount > 0"
    )
