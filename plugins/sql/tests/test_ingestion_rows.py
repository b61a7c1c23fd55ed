"""Rows on their way: out of changelog messages, through what is known of tables, into messages."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore_sql.ingestion.errors import RowRefused, SchemaChanged
from streamcore_sql.ingestion.messages import Packer, Row, RowPlan, Target
from streamcore_sql.ingestion.model import Behavior, ChangeType
from streamcore_sql.ingestion.packed_writer import Packing, packed
from streamcore_sql.ingestion.routing import Route, Router, Selector, TableId
from streamcore_sql.ingestion.row_sql import KIND, TABLE, TEXT
from streamcore_sql.ingestion.shapes import Seen, Shapes

ORDERS = TableId.of("shop.orders")

# --- names and routes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("shop.orders", "shop.orders", True),
        ("shop.orders", "shopXorders", False),
        (r"shop.\.*", "shop.orders", True),
        (r"shop.order_\.*", "shop.order_1", True),
        (r"shop.order_\.*", "shop.items", False),
        (r"a.b, c.d", "c.d", True),
        (r"db_[0-9]{1,2}.t", "db_12.t", True),
        (r"\.*.\.*", "shop.orders", True),
        ("a.b.c", "a.b.c", True),
    ],
)
def test_a_dot_separates_and_an_escaped_dot_is_a_pattern(pattern, name, matches):
    assert bool(Selector(pattern).match(TableId.of(name))) is matches


def test_routes_rename_by_group_by_symbol_or_not_at_all():
    routes = [
        Route(Selector(r"db_(\.*).t_(\.*)"), "ods_$1.x_$2"),
        Route(Selector(r"shop.\.*"), "lake.<>", "<>"),
        Route(Selector("shop.orders"), "copy"),
    ]
    every, first = Router(routes), Router(routes, first_only=True)
    assert every.sinks_of(TableId.of("db_1.t_a")) == ("ods_1.x_a",)
    assert every.sinks_of(ORDERS) == ("lake.orders", "copy")
    assert first.sinks_of(ORDERS) == ("lake.orders",)
    assert every.sinks_of(TableId.of("else.where")) == ("else.where",)


# --- out of messages -------------------------------------------------------------------------

NEW, OLD = {"id": 1, "name": "b"}, {"id": 1, "name": "a"}
MESSAGES = {
    "debezium-json": [
        {"op": "r", "before": None, "after": OLD, "source": {"db": "shop", "table": "orders"}},
        {"op": "u", "before": OLD, "after": NEW, "source": {"db": "shop", "table": "orders"}},
        {"op": "d", "before": NEW, "after": None, "source": {"db": "shop", "table": "orders"}},
        {"op": "t", "source": {"db": "shop", "table": "orders"}},
    ],
    "canal-json": [
        {"type": "INSERT", "data": [OLD], "database": "shop", "table": "orders", "pkNames": ["id"]},
        {
            "type": "UPDATE",
            "data": [NEW],
            "old": [{"name": "a"}],
            "database": "shop",
            "table": "orders",
            "pkNames": ["id"],
        },
        {"type": "DELETE", "data": [NEW], "database": "shop", "table": "orders", "pkNames": ["id"]},
        {"type": "CREATE", "isDdl": True, "database": "shop", "table": "orders"},
    ],
    "maxwell-json": [
        {"type": "insert", "data": OLD, "database": "shop", "table": "orders"},
        {
            "type": "update",
            "data": NEW,
            "old": {"name": "a"},
            "database": "shop",
            "table": "orders",
            "primary_key_columns": ["id"],
        },
        {"type": "delete", "data": NEW, "database": "shop", "table": "orders"},
        {"type": "bootstrap-start", "data": {}, "database": "shop", "table": "orders"},
    ],
    "ogg-json": [
        {"op_type": "I", "after": OLD, "table": "shop.orders"},
        {"op_type": "U", "before": OLD, "after": NEW, "table": "shop.orders"},
        {"op_type": "D", "before": NEW, "table": "shop.orders", "primary_keys": ["id"]},
    ],
}


def decoder(envelope, **options):
    given = {"envelope": envelope, **options}
    plugin = installed().build("format", "table-changes", given)
    schema = pa.schema([("row", pa.string())])
    return plugin.decoder(schema, None, ["table", "shape", "primary-key"])


@pytest.mark.parametrize("envelope", MESSAGES)
def test_every_envelope_gives_the_same_rows(envelope):
    messages = [json.dumps(message).encode() for message in MESSAGES[envelope]]
    found = decoder(envelope).decode([None, *messages])
    assert [json.loads(row) for row in found.rows.column("row").to_pylist()] == [OLD, OLD, NEW, NEW]
    assert found.kinds.to_pylist() == [0, 1, 2, 3]
    assert found.origin.to_pylist() == [1, 2, 2, 3]
    assert set(found.rows.column("table").to_pylist()) == {"shop.orders"}
    assert set(found.rows.column("shape").to_pylist()) == {'["iid", "sname"]'}
    assert not found.rejected
    if envelope != "debezium-json":
        assert '["id"]' in found.rows.column("primary-key").to_pylist()


@pytest.mark.parametrize("envelope", MESSAGES)
def test_rows_equal_those_of_the_format_itself(envelope):
    messages = [json.dumps(message).encode() for message in MESSAGES[envelope][:3]]
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    theirs = installed().build("format", envelope, {}).decoder(schema).decode(messages)
    ours = decoder(envelope).decode(messages)
    assert theirs.rows.to_pylist() == [json.loads(t) for t in ours.rows.column("row").to_pylist()]
    assert theirs.kinds == ours.kinds
    assert theirs.origin == ours.origin


def test_a_message_that_is_no_change_is_rejected_with_a_reason():
    bad = {
        b"{": "not a change: Input data was truncated",
        b"[]": "not a change: Expected `object`, got `array`",
        b'{"op":"x","source":{"table":"t"}}': "the operation is 'x', not one of c, r, u, d",
        b'{"op":"c","after":{}}': "the message does not tell its table",
        b'{"op":"u","before":null,"after":{},"source":{"table":"t"}}': (
            "'before' of an update is not an object"
        ),
    }
    found = decoder("debezium-json").decode(list(bad))
    assert [reason for _, reason in found.rejected] == list(bad.values())
    assert [index for index, _ in found.rejected] == list(range(len(bad)))
    forgiving = decoder("debezium-json", **{"ignore-parse-errors": "true"}).decode(list(bad))
    assert (forgiving.ignored, list(forgiving.rejected)) == (len(bad), [])


def test_a_message_with_its_schema_names_the_option_that_reads_it():
    change = MESSAGES["debezium-json"][0]
    wrapped = json.dumps({"schema": {"type": "struct"}, "payload": change}).encode()
    (found,) = decoder("debezium-json").decode([wrapped]).rejected
    assert found.reason == (
        "the message holds its schema beside its 'payload'; set 'debezium-json.schema-include' to "
        "true"
    )
    told = decoder("debezium-json", **{"schema-include": "true"})
    assert told.decode([wrapped]).rows.column("table").to_pylist() == ["shop.orders"]
    (found,) = told.decode([json.dumps(change).encode()]).rejected
    assert found.reason == "'payload' is missing; set 'debezium-json.schema-include' to false"


def test_numbers_pass_as_they_were_written():
    text = b'{"id":12345678901234567890123,"x":1.10,"y":1e400,"s":"\\u00e9"}'
    whole = b'{"op":"c","after":%s,"source":{"table":"t"}}' % text
    found = decoder("debezium-json").decode([whole])
    assert found.rows.column("row").to_pylist() == [text.decode()]


def test_a_text_that_is_none_is_rejected_beside_a_number_that_is_too_large():
    bad = b'{"op":"c","after":{"id":1e999,"t":"\xff"},"source":{"table":"t"}}'
    found = decoder("debezium-json").decode([bad])
    assert found.rows.num_rows == 0
    assert [reason for _, reason in found.rejected] == [
        "not a change: 'utf-8' codec can't decode byte 0xff in position 17: invalid start byte"
    ]


def test_a_shape_holds_any_name():
    text = b'{"op":"c","after":{"a\\nb":1,"":2,"\\"":3},"source":{"table":"t"}}'
    (told,) = decoder("debezium-json").decode([text]).rows.column("shape").to_pylist()
    assert json.loads(told) == ["ia\nb", "i", 'i"']


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_break_the_decoder(message):
    found = decoder("canal-json").decode([message])
    assert found.rows.num_rows + len(found.rejected) <= 1


# --- what is known of tables -----------------------------------------------------------------


def seen(*columns, key=("id",), table=ORDERS):
    return Seen(table, frozenset(columns), key)


def columns_of(shapes, table=ORDERS):
    return {column.name: column.type for column in shapes.known[table].columns}


def test_types_are_inferred_and_widened():
    shapes = Shapes(Behavior.EVOLVE)
    shapes.learn([seen("iid", "samount", "nnote", "bok")], {})
    assert columns_of(shapes) == {
        "amount": "STRING",
        "id": "BIGINT",
        "note": "STRING",
        "ok": "BOOLEAN",
    }
    notes = shapes.learn([seen("fid", "inote", "jmore")], {})
    assert columns_of(shapes)["id"] == "DOUBLE"
    assert columns_of(shapes)["note"] == "BIGINT"
    assert notes == [
        "column 'id' of 'shop.orders' was BIGINT, now DOUBLE",
        "table 'shop.orders' has a new column 'more' STRING",
    ]


@pytest.mark.parametrize("behavior", [Behavior.EVOLVE, Behavior.TRY_EVOLVE, Behavior.LENIENT])
def test_new_columns_are_taken_in(behavior):
    shapes = Shapes(behavior)
    shapes.learn([seen("iid")], {})
    shapes.learn([seen("iid", "snew")], {})
    assert columns_of(shapes) == {"id": "BIGINT", "new": "STRING"}


def test_ignored_columns_are_left_out_and_known_types_stay():
    shapes = Shapes(Behavior.IGNORE)
    shapes.learn([seen("iid")], {})
    assert shapes.learn([seen("sid", "snew")], {}) == []
    assert columns_of(shapes) == {"id": "BIGINT"}
    assert shapes.known[ORDERS].left_out


def test_an_exception_names_every_change_and_keeps_what_was_known():
    shapes = Shapes(Behavior.EXCEPTION)
    shapes.learn([seen("iid")], {})
    with pytest.raises(SchemaChanged) as caught:
        shapes.learn([seen("fid", "snew")], {})
    assert str(caught.value) == (
        "column 'id' of 'shop.orders' was BIGINT, now DOUBLE; table 'shop.orders' has a new column "
        "'new' STRING, and 'schema.change.behavior' is 'exception'. Nothing of this batch was "
        "written: choose 'evolve' to write such columns, or 'ignore' to leave them out"
    )
    assert columns_of(shapes) == {"id": "BIGINT"}


def test_a_declared_table_keeps_its_types_and_tells_of_more_columns():
    table = Table((Column("id", "INT", False), Column("at", "TIMESTAMP(3)")), "t", ("id",))
    shapes = Shapes(Behavior.EVOLVE)
    notes = shapes.learn([seen("iid", "sat", "inew", key=("other",))], {ORDERS: table})
    assert columns_of(shapes) == {"id": "INT", "at": "TIMESTAMP(3)", "new": "BIGINT"}
    assert shapes.known[ORDERS].key == ("id",)
    assert notes == ["table 'shop.orders' has a new column 'new' BIGINT"]
    with pytest.raises(SchemaChanged):
        Shapes(Behavior.EXCEPTION).learn([seen("iid", "inew")], {ORDERS: table})


def test_an_excluded_change_is_ignored():
    shapes = Shapes(Behavior.EVOLVE, frozenset({ChangeType.ADD_COLUMN}))
    shapes.learn([seen("iid")], {})
    shapes.learn([seen("fid", "snew")], {})
    assert columns_of(shapes) == {"id": "DOUBLE"}


def test_what_is_known_outlives_a_restart(tmp_path):
    first = Shapes(Behavior.EVOLVE, folder=str(tmp_path))
    first.learn([seen("iid", "nnote")], {})
    first.save(["b", "a"], 3)
    second = Shapes(Behavior.EVOLVE, folder=str(tmp_path))
    second.load(lambda table: None)
    assert second.known == first.known
    assert (second.topics, second.first_batch) == (["a", "b"], 3)


@pytest.mark.parametrize("behavior", Behavior)
def test_declared_columns_outlive_a_restart(tmp_path, behavior):
    table = Table((Column("id", "INT"), Column("at", "TIMESTAMP(3)")), "t", ("id",))
    declared = {ORDERS: table}
    first = Shapes(behavior, folder=str(tmp_path))
    first.learn([seen("iid", "sat")], declared)
    first.save(["a"], 0)
    second = Shapes(behavior, folder=str(tmp_path))
    second.load(declared.get)
    assert second.learn([seen("iid", "sat")], declared) == []
    assert columns_of(second) == {"id": "INT", "at": "TIMESTAMP(3)"}


def test_a_refused_column_is_not_found_again(tmp_path):
    shapes = Shapes(Behavior.LENIENT, folder=str(tmp_path))
    shapes.learn([seen("iid", "snext")], {})
    shapes.without(ORDERS, "next")
    shapes.save([], 0)
    again = Shapes(Behavior.LENIENT, folder=str(tmp_path))
    again.load(lambda table: None)
    for each in (shapes, again):
        assert each.learn([seen("iid", "snext")], {}) == []
        assert columns_of(each) == {"id": "BIGINT"}


# --- into messages ---------------------------------------------------------------------------

PLAN = RowPlan(ORDERS, (Target(TableId.of("ods.orders"), "topic"),), ("id",))


def row(kind, **columns):
    return Row("shop.orders", json.dumps(columns).encode(), kind)


def sent(rows, envelope="upsert", key_style="json", plan=PLAN):
    packer = Packer([plan], envelope, key_style)
    messages = [*packer.pack(rows), *packer.end()]
    return [(key and key.decode(), value and json.loads(value)) for _, key, value, _, _ in messages]


def test_upserts_and_tombstones():
    rows = [
        row("+I", id=1, a="x"),
        row("-U", id=1, a="x"),
        row("+U", id=1, a="y"),
        row("-D", id=1, a="y"),
    ]
    assert sent(rows) == [
        ('{"id":1}', {"id": 1, "a": "x"}),
        ('{"id":1}', {"id": 1, "a": "y"}),
        ('{"id":1}', None),
    ]


def test_an_update_of_the_key_takes_the_old_row_back():
    assert sent([row("-U", id=1), row("+U", id=2)]) == [
        ('{"id":1}', None),
        ('{"id":2}', {"id": 2}),
    ]


def test_half_an_update_is_a_row_that_left_or_entered_the_filter():
    assert sent([row("-U", id=1), row("-U", id=2), row("+I", id=3)]) == [
        ('{"id":1}', None),
        ('{"id":2}', None),
        ('{"id":3}', {"id": 3}),
    ]
    assert sent([row("+U", id=1)]) == [('{"id":1}', {"id": 1})]


def test_debezium_envelopes_tell_the_table_and_read_back():
    rows = [row("+I", id=1), row("-U", id=1, a=1), row("+U", id=1, a=2), row("-D", id=1, a=2)]
    found = sent(rows, "debezium-json", "table-json")
    source = {"db": "ods", "table": "orders"}
    assert found == [
        ('{"TableId":"ods.orders","id":1}', {**_change(None, {"id": 1}, "c"), "source": source}),
        (
            '{"TableId":"ods.orders","id":1}',
            {**_change({"id": 1, "a": 1}, {"id": 1, "a": 2}, "u"), "source": source},
        ),
        (
            '{"TableId":"ods.orders","id":1}',
            {**_change({"id": 1, "a": 2}, None, "d"), "source": source},
        ),
    ]
    again = decoder("debezium-json").decode([json.dumps(value).encode() for _, value in found])
    assert again.kinds.to_pylist() == [0, 1, 2, 3]


def _change(before, after, op):
    return {"before": before, "after": after, "op": op}


def test_canal_envelopes_read_back_too():
    rows = [row("+I", id=1), row("-U", id=1, a=1), row("+U", id=1, a=2), row("-D", id=1)]
    found = sent(rows, "canal-json", "csv")
    assert [key for key, _ in found] == ["ods.orders,1"] * 3
    assert found[1][1] == {
        "old": [{"id": 1, "a": 1}],
        "data": [{"id": 1, "a": 2}],
        "type": "UPDATE",
        "database": "ods",
        "table": "orders",
        "pkNames": ["id"],
    }
    again = decoder("canal-json").decode([json.dumps(value).encode() for _, value in found])
    assert again.kinds.to_pylist() == [0, 1, 2, 3]


def test_equal_keys_are_equal_bytes_however_they_were_escaped():
    texts = [b'{"id":"\\u00e9"}', '{"id":"é"}'.encode()]
    found = sent([Row("shop.orders", text, "+I") for text in texts])
    assert found[0][0] == found[1][0] == '{"id":"é"}'


def test_a_row_without_its_key_is_refused():
    with pytest.raises(
        RowRefused, match="a row has no value for 'id', a column of its primary key"
    ):
        sent([row("+I", name="x")])


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "Straße", "a b", "%s"])
def test_a_key_may_have_any_name(name):
    plan = RowPlan(ORDERS, PLAN.targets, (name, "id"))
    ((key, _),) = sent([row("+I", **{"id": 1, name: 2})], plan=plan)
    assert json.loads(key) == {name: 2, "id": 1}


def test_rows_become_the_columns_that_a_connector_takes():
    plan = RowPlan(ORDERS, PLAN.targets, ("id",), ("region",), ("id", "region"))
    packing = Packing(
        (plan,), {}, "upsert", "json", {"a": "1"}, True, {}, {}, ("topic", "place", "headers")
    )
    assert Packing.from_text(packing.to_text()) == packing.__class__(
        [plan], {}, "upsert", "json", {"a": "1"}, True, {}, {}, ["topic", "place", "headers"]
    )
    rows = pa.RecordBatch.from_pylist(
        [{TABLE: "shop.orders", TEXT: '{"id":1,"region":"eu","new":2}', KIND: "+I"}]
    )
    (batch,) = packed([rows], packing)
    assert batch.to_pylist() == [
        {
            "topic": "topic",
            "place": "eu",
            "headers": [
                ("a", b"1"),
                ("namespace", b""),
                ("schemaName", b"ods"),
                ("tableName", b"orders"),
            ],
        }
    ]


def test_declared_rows_are_normalised_and_misfits_refused():
    columns = (Column("id", "INT"), Column("price", "DECIMAL(10, 2)"))
    packing = Packing(
        (PLAN,), {"shop.orders": columns}, "upsert", "json", {}, False, {}, {}, ("value",)
    )

    def values(*texts):
        rows = [{TABLE: "shop.orders", TEXT: text, KIND: "+I"} for text in texts]
        return [
            value
            for batch in packed([pa.RecordBatch.from_pylist(rows)], packing)
            for value in batch.column("value").to_pylist()
        ]

    assert values('{"id":"1","price":2.5,"x":9}', '{"id":2}') == [
        b'{"id":1,"price":2.5}',
        b'{"id":2,"price":null}',
    ]
    with pytest.raises(RowRefused, match=r"table 'shop.orders': .*; the row is \{\"id\":\"one\"\}"):
        values('{"id":"one"}')
