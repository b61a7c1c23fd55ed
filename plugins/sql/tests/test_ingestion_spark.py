"""Transforms on a real Spark: what becomes of rows between source and sink."""

import json

import pytest
from streamcore import Column
from streamcore_sql import Session, SqlError
from streamcore_sql.ingestion.batches import TableWriter
from streamcore_sql.ingestion.errors import Problems, RowRefused
from streamcore_sql.ingestion.packed_writer import packed
from streamcore_sql.ingestion.planning import prepare_job
from streamcore_sql.ingestion.routing import TableId
from streamcore_sql.ingestion.row_sql import KIND, TABLE, TEXT, to_text
from streamcore_sql.ingestion.shapes import Seen, Shape
from streamcore_sql.ingestion.sources import look, look_at_names

HEAD = """
source:
  type: kafka
  topic: shop
  properties.bootstrap.servers: localhost:9092
  scan.startup.mode: earliest-offset
  value.format: debezium-json
{tables}
sink:
  type: {sink}
  properties.bootstrap.servers: localhost:9092
"""
ORDERS = """
  tables:
    - name: shop.orders
      columns: >-
        id BIGINT, amount DECIMAL(10, 2), `from` STRING, at TIMESTAMP(3), seen TIMESTAMP_LTZ(3),
        tags ARRAY<STRING>, raw BYTES, PRIMARY KEY (id) NOT ENFORCED
"""


def double(number: int) -> int:
    return 2 * number


class Batches:
    """Runs batches of a job without its source and sink."""

    def __init__(self, spark, text, **options):
        self._spark = spark
        session = Session(spark, name="job", dry=True)
        self.job = prepare_job(session, text, "job.yaml", lambda: None, dry=True)
        session.planner  # noqa: B018 - makes functions known to Spark
        self.writer: TableWriter = self.job._writer

    def messages(self, *rows):
        """The messages that rows (table, kind, columns) become, as (topic, key, value)."""
        fields = [
            {
                TABLE: table,
                TEXT: json.dumps(row),
                KIND: kind,
                "shape": json.dumps([_letter(value) + name for name, value in row.items()]),
                "primary_key": '["id"]',
            }
            for table, kind, row in rows
        ]
        schema = f"{TABLE} string, {TEXT} string, {KIND} string, shape string, primary_key string"
        batch = self._spark.createDataFrame(
            [tuple(each.values()) for each in fields], schema
        ).coalesce(1)
        seen = look(batch)
        self.writer._shapes.learn(seen, self.writer._known(seen))
        frame, packing = self.writer.plan(batch, [each.table for each in seen])
        chosen = packing.__class__(
            **{**vars(packing), "columns": ("topic", "key", "value", "_row_kind")}
        )
        return [
            (
                message["topic"],
                message["key"] and json.loads(message["key"]),
                message["value"] and json.loads(message["value"]),
            )
            for batch in packed(frame.toArrow().to_batches(), chosen)
            for message in batch.to_pylist()
        ]


def _letter(value):
    return {int: "i", float: "f", bool: "b", str: "s", type(None): "n"}.get(type(value), "j")


def job(transform, *, tables="", sink="upsert-kafka", pipeline=""):
    return HEAD.format(tables=tables, sink=sink) + "transform:\n" + transform + pipeline


def test_a_projection_computes_and_declared_types_come_through(spark):
    text = job(
        r"""
  - source-table: shop.orders
    projection: \*, UPPER(`from`) AS place, __schema_name__ AS db, amount * 2 AS twice
    filter: amount > 10 AND place <> 'NOWHERE'
""",
        tables=ORDERS,
    )
    row = {
        "id": 1,
        "amount": 12.5,
        "from": "here",
        "at": "2024-05-06 07:08:09.123",
        "seen": "2024-05-06 07:08:09.120Z",
        "tags": ["a", "b"],
        "raw": "AQI=",
    }
    batches = Batches(spark, text)
    found = batches.messages(
        ("shop.orders", "+I", row),
        ("shop.orders", "+I", {**row, "id": 2, "amount": 3}),
        ("shop.orders", "+I", {**row, "id": 3, "from": "nowhere"}),
    )
    assert found == [
        (
            "shop.orders",
            {"id": 1},
            {
                **row,
                "amount": 12.5,
                "seen": "2024-05-06 07:08:09.12Z",
                "place": "HERE",
                "db": "shop",
                "twice": 25.0,
            },
        )
    ]


@pytest.fixture
def zone(spark):
    yield "Europe/Berlin"
    spark.conf.set("spark.sql.session.timeZone", "UTC")


MOMENTS = {
    "2024-03-31 00:30:00Z": "2024-03-31 01:30:00",
    "2024-03-31 01:30:00Z": "2024-03-31 03:30:00",
    "2024-03-31 02:30:00Z": "2024-03-31 04:30:00",
    "2024-10-27 00:30:00Z": "2024-10-27 02:30:00",
    "2024-10-27 01:30:00Z": "2024-10-27 02:30:00",
    "2024-10-27 02:30:00.123456Z": "2024-10-27 03:30:00.123456",
    "1850-01-01 00:00:00Z": "1850-01-01 00:53:28",
}
"""Around the hours that clocks in Berlin skip and repeat, and what they show then."""


@pytest.mark.parametrize("standard", ["SQL", "ISO-8601"])
def test_moments_stay_the_same_whatever_the_zone_that_expressions_see_them_in(
    spark, zone, standard
):
    text = job(
        "\n  - source-table: shop.a\n    projection: id, at, CAST(at AS STRING) AS here\n",
        tables="  tables:\n    - name: shop.a\n      columns: id BIGINT, at TIMESTAMP_LTZ(6)\n"
        "      primary-keys: id\n",
        pipeline=f"pipeline:\n  local-time-zone: {zone}\n",
    ).replace("sink:\n", f"sink:\n  value.json.timestamp-format.standard: {standard}\n")
    rows = [{"id": number, "at": moment} for number, moment in enumerate(MOMENTS)]
    found = Batches(spark, text).messages(*(("shop.a", "+I", row) for row in rows))
    middle = " " if standard == "SQL" else "T"
    assert [value for _, _, value in found] == [
        {**row, "at": row["at"].replace(" ", middle), "here": MOMENTS[row["at"]]} for row in rows
    ]


def test_rows_without_a_transform_keep_their_moments(spark, zone):
    text = HEAD.format(
        tables="  tables:\n    - name: shop.a\n      columns: id BIGINT, at TIMESTAMP_LTZ(6)\n"
        "      primary-keys: id\n",
        sink="upsert-kafka",
    )
    rows = [{"id": number, "at": moment} for number, moment in enumerate(MOMENTS)]
    batches = Batches(spark, f"{text}pipeline:\n  local-time-zone: {zone}\n")
    found = batches.messages(*(("shop.a", "+I", row) for row in rows))
    assert [value for _, _, value in found] == rows


NESTED = """
  tables:
    - name: shop.a
      columns: >-
        id BIGINT, seen ARRAY<TIMESTAMP_LTZ(6)>, part ROW<`at` TIMESTAMP(6), n INT>,
        PRIMARY KEY (id) NOT ENFORCED
"""


def test_values_inside_of_others_come_through_a_transform(spark, zone):
    text = job(
        "\n  - source-table: shop.a\n    projection: \\*, id + 1 AS next\n",
        tables=NESTED,
        pipeline=f"pipeline:\n  local-time-zone: {zone}\n",
    )
    row = {
        "id": 1,
        "seen": ["2024-03-31 02:30:00.123456Z", None],
        "part": {"at": "2024-03-31 02:30:00.123456", "n": 2},
    }
    batches = Batches(spark, text)
    found = batches.messages(("shop.a", "+I", row), ("shop.a", "+I", {"id": 2, "part": None}))
    assert [value for _, _, value in found] == [
        {**row, "next": 2},
        {"id": 2, "seen": None, "part": None, "next": 3},
    ]
    with pytest.raises(Exception, match="table shop.a, column part: .*many.* is not ROW"):
        batches.messages(("shop.a", "+I", {**row, "part": {"at": None, "n": "many"}}))


def test_moments_that_a_connector_reads_stay_the_same_too(spark, zone):
    spark.conf.set("spark.sql.session.timeZone", zone)
    columns = [Column("at", "TIMESTAMP_LTZ(6)")]
    frame = spark.createDataFrame([(moment,) for moment in MOMENTS], "at string")
    written = frame.selectExpr("CAST(at AS TIMESTAMP) AS at").selectExpr(to_text(columns)).collect()
    assert [json.loads(row[0])["at"] for row in written] == list(MOMENTS)


def test_inferred_columns_evolve_and_those_that_clash_with_the_projection_stay_out(spark, caplog):
    text = job(
        r"""
  - source-table: shop.\.*
    projection: \*, id + 1 AS next, __table_name__ AS origin
"""
    )
    batches = Batches(spark, text)
    (first,) = batches.messages(("shop.a", "+I", {"id": 1}))
    assert first[2] == {"id": 1, "next": 2, "origin": "a"}
    found = batches.messages(
        ("shop.a", "+I", {"id": 2, "vip": True, "next": 9}), ("shop.b", "+I", {"id": 3})
    )
    assert [value for _, _, value in found] == [
        {"id": 2, "vip": True, "next": 3, "origin": "a"},
        {"id": 3, "next": 4, "origin": "b"},
    ]
    again = {"id": 4, "vip": True, "next": 9}
    (third,) = batches.messages(("shop.a", "+I", again))
    assert third[2] == {**again, "next": 5, "origin": "a"}
    told = "table 'shop.a': column 'next' is left out: the projection has one of that name"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_a_column_that_will_be_left_out_is_no_reason_not_to_start(spark):
    rule = "\n  - source-table: shop.a\n    projection: \\*, id + 1 AS next\n"
    shape = Shape(inferred={"id": "i", "next": "i"}, key=("id",))
    Batches(spark, job(rule)).job._check_table(TableId.of("shop.a"), shape, problems := Problems())
    problems.raise_any()
    strict = job(rule, pipeline="pipeline:\n  schema.change.behavior: evolve\n")
    Batches(spark, strict).job._check_table(TableId.of("shop.a"), shape, problems)
    with pytest.raises(SqlError, match="column 'next' is given twice"):
        problems.raise_any()


def test_ignored_columns_stay_out_of_a_transform_and_values_of_other_types_are_null(spark):
    text = job(
        "\n  - source-table: shop.a\n    projection: \\*, n + 1 AS next\n",
        pipeline="pipeline:\n  schema.change.behavior: ignore\n",
    )
    batches = Batches(spark, text)
    (first,) = batches.messages(("shop.a", "+I", {"id": 1, "n": 1}))
    assert first[2] == {"id": 1, "n": 1, "next": 2}
    (second,) = batches.messages(("shop.a", "+I", {"id": 2, "n": "many", "new": True}))
    assert second[2] == {"id": 2, "n": None, "next": None}


def test_rules_for_no_table_known_so_far_are_noted_with_their_place(spark):
    text = job(
        "\n  - source-table: shop.oders\n    filter: id > 0\n",
        tables=ORDERS + "    - shop.\\.*\n",
    )
    text += "route:\n  - {source-table: shop.ordres, sink-table: a}\n"
    text += "  - {source-table: shop.orders, sink-table: b}\n"
    notes = [note for note in Batches(spark, text).job.notes if note.startswith("job.yaml")]
    assert notes == [
        "job.yaml, line 24, column 20: route[1]: source-table: 'shop.ordres' matches no table "
        "known so far",
        "job.yaml, line 21, column 19: transform[1]: source-table: 'shop.oders' matches no table "
        "known so far",
    ]


@pytest.mark.parametrize(
    ("guarantee", "asked", "tasks", "together"),
    [
        ("at-least-once", None, 4, TEXT),
        ("at-least-once", 3, 3, TEXT),
        ("at-least-once", 9, 4, TEXT),
        ("exactly-once", None, 4, TEXT),
        ("exactly-once", 3, 3, TABLE),
        ("exactly-once", 9, 9, TABLE),
    ],
)
def test_parallelism_never_parts_rows_whose_order_counts(spark, guarantee, asked, tasks, together):
    text = HEAD.format(tables="", sink=f"upsert-kafka\n  sink.delivery-guarantee: {guarantee}")
    text += f"pipeline: {{parallelism: {asked}}}\n" if asked else ""
    rows = spark.range(0, 64, 1, 4).selectExpr(
        f"concat('shop.', id % 8) AS {TABLE}", f"string(id DIV 16) AS {TEXT}", f"'+I' AS {KIND}"
    )
    dealt = Batches(spark, text).writer._dealt(rows, 1)
    assert dealt.rdd.getNumPartitions() == tasks
    found = dealt.selectExpr("spark_partition_id() AS task", TABLE, TEXT).collect()
    assert len(found) == 64
    parts = {(row["task"], row[together]) for row in found}
    assert len(parts) == len({part for _, part in parts}), "one of them is in two tasks"


def test_names_may_hold_anything_that_json_can_write(spark):
    (found,) = Batches(spark, HEAD.format(tables="", sink="upsert-kafka")).messages(
        ("shop.a", "+I", {"id": 1, "a\nb": 2, 'say "x"\\': 3})
    )
    assert found[2] == {"id": 1, "a\nb": 2, 'say "x"\\': 3}


def test_spark_is_asked_once_what_a_rule_makes_of_columns(spark, monkeypatch):
    batches = Batches(spark, job("\n  - source-table: shop.a\n    filter: id > 0\n"))
    batches.messages(("shop.a", "+I", {"id": 1}))
    monkeypatch.setattr(type(spark), "createDataFrame", None)
    shape = batches.writer._shapes.known[TableId.of("shop.a")]
    rule = batches.job.job.transforms[0]
    assert batches.writer.check(spark, shape.columns, rule) == shape.columns


def test_rows_of_tables_that_the_file_does_not_name_are_told_of_once(spark, caplog):
    batches = Batches(spark, HEAD.format(tables="  tables: shop.a", sink="upsert-kafka"))
    seen = [Seen(TableId.of(f"shop.{name}"), frozenset()) for name in "abcdefgh"]
    batches.writer._batch = 7
    assert batches.writer._wanted(seen) == seen[:1]
    assert batches.writer._wanted(seen) == seen[:1]
    assert [(record.job, record.batch) for record in caplog.records] == [("job.tables", 7)]
    assert [record.getMessage() for record in caplog.records] == [
        "rows of 'shop.b', 'shop.c', 'shop.d', 'shop.e', 'shop.f' and 2 more are left out: "
        "'source.tables' does not name them"
    ]


def test_a_row_that_tells_no_table_stops_the_job(spark):
    names = spark.createDataFrame([("shop.a",), (None,), ("shop.a",)], f"{TABLE} string")
    assert look_at_names(names.dropna()) == [Seen(TableId.of("shop.a"), frozenset())]
    with pytest.raises(RowRefused, match="a row does not tell its table"):
        look_at_names(names)


def test_rows_that_leave_a_filter_are_deleted_and_those_that_enter_it_inserted(spark):
    text = job("\n  - source-table: shop.a\n    filter: n > 10\n", sink="kafka")
    found = Batches(spark, text).messages(
        ("shop.a", "-U", {"id": 1, "n": 20}),
        ("shop.a", "+U", {"id": 1, "n": 5}),
        ("shop.a", "-U", {"id": 2, "n": 5}),
        ("shop.a", "+U", {"id": 2, "n": 20}),
        ("shop.a", "-U", {"id": 3, "n": 20}),
        ("shop.a", "+U", {"id": 3, "n": 21}),
        ("shop.a", "-D", {"id": 4, "n": 1}),
    )
    assert [(value["op"], key["id"]) for _, key, value in found] == [("d", 1), ("c", 2), ("u", 3)]


def test_a_soft_delete_is_a_row_that_tells_it(spark):
    text = job(
        r"""
  - source-table: shop.a
    projection: \*, __data_event_type__ AS op
    converter-after-transform: SOFT_DELETE
"""
    )
    found = Batches(spark, text).messages(("shop.a", "+I", {"id": 1}), ("shop.a", "-D", {"id": 1}))
    assert [value for _, _, value in found] == [{"id": 1, "op": "+I"}, {"id": 1, "op": "-D"}]


def test_python_functions_can_be_called(spark):
    text = job(
        "\n  - source-table: shop.a\n    projection: id, twofold(id) AS n\n",
        pipeline=f"""
pipeline:
  user-defined-function:
    - name: twofold
      classpath: {__name__}.double
""",
    )
    (found,) = Batches(spark, text).messages(("shop.a", "+I", {"id": 21}))
    assert found[2] == {"id": 21, "n": 42}


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            "projection: id, amuont",
            "line 21, column 21: projection: no column called 'amuont'\n"
            "        projection: id, amuont\n                        ^^^^^^\n"
            "Did you mean 'amount'?",
        ),
        (
            "filter: amount >> 3 >",
            "line 21, column 25: filter: '>' does not fit here\n        filter: amount >> 3 >\n"
            "                            ^",
        ),
        (
            "filter: amuont > 3",
            "line 21, column 13: filter: no column called 'amuont'\n        filter: amuont > 3\n"
            "                ^^^^^^\nDid you mean 'amount'?",
        ),
        (
            "projection: id, UPPER(id",
            "line 21, column 26: projection: '(' is never closed\n"
            "        projection: id, UPPER(id\n                             ^\nClose it with ')'.",
        ),
        (
            "projection: id, id",
            "line 21, column 17: projection: column 'id' is given twice\n"
            "        projection: id, id\n                    ^^^^^^\nName one of them with AS.",
        ),
        (
            "primary-keys: idd",
            "line 21, column 19: primary-keys: no column called 'idd'\n"
            "        primary-keys: idd\n                      ^^^\nDid you mean 'id'?",
        ),
    ],
)
def test_a_rule_that_does_not_fit_a_declared_table_is_told_before_anything_starts(
    spark, rule, told
):
    text = job(f"\n  - source-table: shop.orders\n    {rule}\n", tables=ORDERS)
    with pytest.raises(SqlError) as caught:
        Batches(spark, text)
    assert str(caught.value).startswith(f"job.yaml, {told}")


def test_a_projection_that_drops_the_key_is_told_before_anything_starts(spark):
    rule = "\n  - source-table: shop.orders\n    projection: amount\n"
    with pytest.raises(SqlError) as caught:
        Batches(spark, job(rule, tables=ORDERS))
    assert str(caught.value) == (
        "job.yaml, line 21, column 17: table 'shop.orders': column 'id' of its primary key is not "
        "written; add it to the projection, or set 'primary-keys' in the transform\n"
        "        projection: amount\n                    ^^^^^^"
    )


def test_a_value_that_does_not_fit_its_column_is_told_with_its_table(spark):
    text = job("\n  - source-table: shop.orders\n    filter: id > 0\n", tables=ORDERS)
    with pytest.raises(Exception, match="table shop.orders, column amount: much is not DECIMAL"):
        Batches(spark, text).messages(("shop.orders", "+I", {"id": 1, "amount": "much"}))
