"""The `protobuf` format."""

import random
import sys
import textwrap
from typing import ClassVar

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from streamcore import OptionError, RecordError
from streamcore.testing import decode, encode
from streamcore.testing.codec import build
from streamcore.testing.contracts import FormatContract
from streamcore.types import arrow_schema
from streamcore_formats.protobuf.format import Protobuf

SIMPLE = {
    "a": "INT",
    "b": "BIGINT",
    "c": "BOOLEAN",
    "d": "FLOAT",
    "e": "DOUBLE",
    "f": "STRING",
    "g": "BYTES",
    "h": "STRING",
}
FULL = {
    "a": 1,
    "b": -(2**63),
    "c": True,
    "d": 0.5,
    "e": 1e300,
    "f": "Zoë",
    "g": b"\x00\xff",
    "h": "IMAGES",
}
NOTHING = dict.fromkeys(SIMPLE)
INNER = "ROW<x INT, y BIGINT>"


def rows_of(columns, messages, options):
    return [row for _, row in decode("protobuf", arrow_schema(columns), messages, options)]


class TestProtobuf(FormatContract):
    plugin: ClassVar = Protobuf(message="google.protobuf.timestamp_pb2.Timestamp")
    columns: ClassVar = {name: sql for name, sql in SIMPLE.items() if name != "h"}
    junk: ClassVar = (b"\xff\xff", b"\x32\x05ab", b"\x32\x01\xff")

    @pytest.fixture(autouse=True)
    def _use_descriptors(self, descriptors):
        type(self).plugin = Protobuf(message="two.Simple", descriptor_file=str(descriptors))

    @pytest.mark.parametrize("column", columns)
    def test_it_reads_back_what_it_writes(self, column):
        schema = arrow_schema({column: SIMPLE[column]})

        def check(sent):
            decoded = self._decode(schema, self._encode(schema, sent))
            assert decoded.rows.to_pylist() == sent

        self._try({column: SIMPLE[column]}, check)


# --- reading ------------------------------------------------------------------------------


def test_each_kind_of_field_is_read(options, make):
    assert rows_of(SIMPLE, [make("two.Simple", **FULL)], options("two.Simple")) == [FULL]


def test_fields_that_are_not_set_are_null(options):
    assert rows_of(SIMPLE, [b""], options("two.Simple")) == [NOTHING]


def test_fields_that_are_not_set_are_their_defaults_if_asked(options):
    row = rows_of(SIMPLE, [b""], options("two.Simple", read_default_values="true"))[0]
    assert row == {
        "a": 10,
        "b": 100,
        "c": False,
        "d": 0.0,
        "e": 0.0,
        "f": "f",
        "g": b"",
        "h": "UNIVERSAL",
    }


@pytest.mark.parametrize("sql", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
def test_enums_are_names_or_numbers(options, make, sql):
    message = make("two.Simple", h="WEB")
    assert rows_of({"h": sql}, [message], options("two.Simple")) == [{"h": 1}]
    assert rows_of({"h": "STRING"}, [message], options("two.Simple")) == [{"h": "WEB"}]


def test_a_null_message_is_no_row(options):
    assert rows_of({"a": "INT"}, [None], options("two.Simple")) == []


def test_proto3_scalars_have_defaults_and_containers_are_null(options):
    columns = {
        "a": "INT",
        "b": "BIGINT",
        "c": "STRING",
        "d": "FLOAT",
        "e": "DOUBLE",
        "f": "STRING",
        "g": "ROW<a INT, b BIGINT>",
        "h": "ARRAY<ROW<a INT, b BIGINT>>",
        "i": "BYTES",
        "m": "MAP<STRING, STRING>",
        "o": "INT",
    }
    empty = {"a": 0, "b": 0, "c": "", "d": 0.0, "e": 0.0, "f": "UNIVERSAL", "i": b""}
    row = {**empty, "g": None, "h": None, "m": None, "o": None}
    assert rows_of(columns, [b""], options("three.Plain")) == [row]
    given = rows_of(columns, [b""], options("three.Plain", read_default_values="true"))
    assert given == [{**row, "h": [], "m": {}, "o": 0}]


def test_repeated_fields_maps_and_nested_messages(options, make):
    columns = {
        "ints": "ARRAY<INT>",
        "texts": "ARRAY<STRING>",
        "rows": f"ARRAY<{INNER}>",
        "to_text": "MAP<STRING, STRING>",
        "to_row": f"MAP<INT, {INNER}>",
        "inner": "ROW<x INT, z ROW<z ROW<y BIGINT>>>",
        "kinds": "ARRAY<STRING>",
    }
    row = {
        "ints": [1, 2, 3],
        "texts": ["", "b"],
        "rows": [{"x": 1, "y": None}, {"x": None, "y": 2}],
        "to_text": {"a": "b", "c": ""},
        "to_row": {7: {"x": 1, "y": 2}, -1: {"x": None, "y": None}},
        "inner": {"x": 5, "z": {"z": {"y": 9}}},
        "kinds": ["WEB", "UNIVERSAL"],
    }
    bare = {
        **row,
        "rows": [{"x": 1}, {"y": 2}],
        "to_row": {7: {"x": 1, "y": 2}},
    }
    from_others = make("two.Containers", **{k: v for k, v in bare.items() if k != "to_row"})
    assert rows_of(columns, [from_others], options("two.Containers")) == [{**row, "to_row": None}]
    written = encode("protobuf", arrow_schema(columns), [row], options("two.Containers"))
    assert rows_of(columns, written, options("two.Containers")) == [row]


def test_only_the_member_of_a_oneof_that_is_set_is_not_null(options, make):
    columns = {"a": "INT", "b": "INT"}
    messages = [make("two.Choice", b=3), make("two.Choice", a=0), b""]
    assert rows_of(columns, messages, options("two.Choice")) == [
        {"a": None, "b": 3},
        {"a": 0, "b": None},
        {"a": None, "b": None},
    ]
    three = {"left": "INT", "right": "STRING"}
    assert rows_of(three, [make("three.Plain", right="")], options("three.Plain")) == [
        {"left": None, "right": ""}
    ]


def test_fields_the_table_does_not_know_are_passed_over(options, make):
    message = make("two.New", a=7, extra="new")
    assert rows_of({"a": "INT"}, [message], options("two.Old")) == [{"a": 7}]


def test_timestamps_are_rows_of_seconds_and_nanos(options, make):
    columns = {"id": "STRING", "ts": "ROW<seconds BIGINT, nanos INT>"}
    message = make("two.Event", id="e", ts={"seconds": 1672498800, "nanos": 123})
    row = {"id": "e", "ts": {"seconds": 1672498800, "nanos": 123}}
    assert rows_of(columns, [message], options("two.Event")) == [row]
    assert encode("protobuf", arrow_schema(columns), [row], options("two.Event")) == [message]
    assert rows_of(columns, [make("two.Event", id="e")], options("two.Event")) == [
        {"id": "e", "ts": None}
    ]


def test_a_thousand_fields_are_read_and_written(options):
    columns = {f"f{n}": "INT" for n in range(1, 1001)}
    row = {name: n for n, name in enumerate(columns)}
    written = encode("protobuf", arrow_schema(columns), [row], options("two.Big"))
    assert rows_of(columns, written, options("two.Big")) == [row]


def test_only_wanted_columns_come_back(options, make):
    plugin = build("protobuf", options("two.Simple"))
    messages = [make("two.Simple", **FULL), None, b"\xff"]
    decoded = plugin.decoder(arrow_schema(SIMPLE), ["f", "a"]).decode(messages)
    assert decoded.rows.to_pylist() == [{"f": "Zoë", "a": 1}]
    assert plugin.decoder(arrow_schema(SIMPLE), []).decode(messages).rows.num_rows == 1


# --- bad messages -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\x00", "no field starts at byte 0"),
        (b"\x08", "'a' at byte 0: ends inside a number"),
        (b"\x08\x01\x25\x01", "'d' at byte 2: ends inside a number"),
        (b"\x08\x01\xa1\x06\x01", "field 100 at byte 2: ends inside a number"),
        (b"\x32\x05ab", "'f' at byte 0: 5 bytes declared, but only 2 are left"),
        (b"\x32\xff\xff\xff\xff\x0fx", "4294967295 bytes declared, but only 1 are left"),
        (b"\x08\x01\x0e", "'a' at byte 2: wire type 6 does not exist"),
        (b"\x32\x01\xff", "'f': not UTF-8"),
        (b"\x48\xff\xff\xff\xff\x0f", "'u': 4294967295 does not fit int32"),
        (b"\x50" + b"\xff" * 9 + b"\x01", "'v': 18446744073709551615 does not fit int64"),
    ],
)
def test_a_bad_message_costs_itself_and_says_where(options, make, message, why):
    columns = {**SIMPLE, "u": "INT", "v": "BIGINT"}
    good = make("two.Simple", a=5)
    plugin = build("protobuf", options("two.Simple"))
    decoded = plugin.decoder(arrow_schema(columns)).decode([good, message, good])
    assert decoded.rows.column("a").to_pylist() == [5, 5]
    assert decoded.origin.to_pylist() == [0, 2]
    assert [index for index, _ in decoded.rejected] == [1]
    assert why in decoded.rejected[0].reason


def test_bad_text_in_proto3_is_found_by_the_parser(options):
    plugin = build("protobuf", options("three.Plain"))
    [rejected] = plugin.decoder(arrow_schema({"c": "STRING"})).decode([b"\x1a\x01\xff"]).rejected
    assert rejected.reason == "'c' at byte 0: not UTF-8: invalid start byte"


def test_bad_messages_are_ignored_if_asked(options, make):
    plugin = build("protobuf", options("two.Simple", ignore_parse_errors="true"))
    messages = [make("two.Simple", a=1), b"\xff", b"\x32\x01\xff"]
    decoded = plugin.decoder(arrow_schema(SIMPLE)).decode(messages)
    assert (decoded.rows.num_rows, decoded.ignored, decoded.rejected) == (1, 2, ())


def test_a_required_field_must_be_there(options):
    plugin = build("protobuf", options("two.Strict"))
    schema = arrow_schema({"name": "STRING"})
    decoded = plugin.decoder(schema).decode([b"\x12\x01x", b"\x08\x01\x12\x01y"])
    assert decoded.rows.to_pylist() == [{"name": "y"}]
    assert decoded.rejected[0].reason == "'id' is required but not set"


OPTION = "google.protobuf.descriptor_pb2.UninterpretedOption"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\x12\x03\x0a\x01a", "'name[0].is_extension' is required but not set"),
        (
            b"\x12\x02\x10\x01" + b"\x12\x05\x0a\x01a\x10\x01" * 2 + b"\x12\x00",
            "'name[0].name_part', 'name[3].name_part', 'name[3].is_extension' "
            "are required but not set",
        ),
        (
            b"\x12\x00" * 1_000_000,
            "'name[0].name_part', 'name[0].is_extension', 'name[1].name_part' and others "
            "are required but not set",
        ),
    ],
)
def test_of_many_required_fields_a_few_are_named(message, why):
    decoder = Protobuf(message=OPTION).decoder(arrow_schema({"identifier_value": "STRING"}))
    decoded = decoder.decode([b"\x1a\x01a", message])
    assert decoded.rows.to_pylist() == [{"identifier_value": "a"}]
    [(_, reason)] = decoded.rejected
    assert reason == why


def test_the_first_hundred_thousand_fields_are_looked_at_for_what_is_wrong():
    decoder = Protobuf(message=OPTION).decoder(arrow_schema({"positive_int_value": "BIGINT"}))
    field, cut = b"\x20\x01", b"\x22\xff"
    [near, far] = decoder.decode([field * 99_999 + cut, field * 5_000_000 + cut]).rejected
    assert near.reason == "'positive_int_value' at byte 199998: ends inside a length"
    assert far.reason == "broken after byte 200000; the 100000 fields before are fine"


def test_not_null_columns_must_be_set(options, make):
    plugin = build("protobuf", options("two.Containers"))
    schema = arrow_schema({"inner": "ROW<x INT NOT NULL>", "ints": "ARRAY<INT>"})
    messages = [make("two.Containers", inner={"y": 1}), make("two.Containers", inner={"x": 1}), b""]
    decoded = plugin.decoder(schema).decode(messages)
    assert decoded.rejected[0].reason == "'inner': 'x': not set, but it is NOT NULL"
    assert decoded.origin.to_pylist() == [1, 2]


def test_an_enum_value_nobody_knows_is_rejected_as_text_and_kept_as_number(options):
    plugin = build("protobuf", options("three.Plain"))
    unknown = b"\x30\x09"
    [rejected] = plugin.decoder(arrow_schema({"f": "STRING"})).decode([unknown]).rejected
    assert rejected.reason == "'f': 9 is no value of enum 'three.Corpus'"
    assert rows_of({"f": "INT"}, [unknown], options("three.Plain")) == [{"f": 9}]


def test_deep_nesting_is_rejected(options):
    deep = b""
    for _ in range(20_000):
        deep = b"\x1a" + _varint(len(deep)) + deep
        if len(deep) > 60_000:
            break
    deep = b"\x32" + _varint(len(deep)) + deep
    plugin = build("protobuf", options("two.Containers"))
    decoded = plugin.decoder(arrow_schema({"inner": "ROW<x INT>"})).decode([b"", deep, b""])
    assert decoded.rows.num_rows == 2
    assert "nested deeper than 100 messages" in decoded.rejected[0].reason


def test_broken_messages_cost_only_themselves(options, make):
    noise = random.Random(3)
    columns = {
        "ints": "ARRAY<INT>",
        "texts": "ARRAY<STRING>",
        "inner": "ROW<x INT, z ROW<y BIGINT>>",
    }
    columns |= {"to_text": "MAP<STRING, STRING>", "kinds": "ARRAY<STRING>"}
    sound = make(
        "two.Containers",
        ints=[1, -1, 300],
        texts=["a", "é"],
        inner={"x": 1, "z": {"y": 2}},
        to_text={"k": "v"},
        kinds=["WEB"],
    )
    messages = [sound]
    for _ in range(20_000):
        out = bytearray(sound)
        for _ in range(noise.choice((1, 1, 2, 4))):
            where = noise.randrange(len(out))
            match noise.randrange(3):
                case 0:
                    del out[where : where + noise.randrange(1, 4)]
                case 1:
                    out[where:where] = noise.randbytes(2)
                case 2:
                    out[where] = noise.choice((0, 1, 7, 0x7F, 0x80, 0xFF))
        messages.append(bytes(out))
    decoder = build("protobuf", options("two.Containers")).decoder(arrow_schema(columns))
    decoded = decoder.decode(messages)
    assert decoded.rows.num_rows + len(decoded.rejected) == len(messages)
    assert 0 < len(decoded.rejected) < len(messages)
    rows = decoded.rows.to_pylist()
    for place, index in enumerate(decoded.origin.to_pylist()[:500]):
        assert decoder.decode([messages[index]]).rows.to_pylist() == [rows[place]]
    for index, why in decoded.rejected[:500]:
        assert decoder.decode([messages[index]]).rejected[0].reason == why


def _varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


# --- writing ------------------------------------------------------------------------------


def test_null_columns_are_not_set(options):
    assert encode("protobuf", arrow_schema(SIMPLE), [NOTHING], options("two.Simple")) == [b""]


@pytest.mark.parametrize("sql", ["TINYINT", "SMALLINT", "INT", "BIGINT"])
def test_enums_are_written_from_numbers(options, make, sql):
    written = encode("protobuf", arrow_schema({"h": sql}), [{"h": 2}], options("two.Simple"))
    assert written == [make("two.Simple", h="IMAGES")]


@pytest.mark.parametrize("literal", [None, "nothing", "\\n"])
def test_nulls_inside_containers_become_defaults(options, literal):
    columns = {
        "ints": "ARRAY<INT>",
        "texts": "ARRAY<STRING>",
        "rows": f"ARRAY<{INNER}>",
        "to_text": "MAP<STRING, STRING>",
        "to_row": f"MAP<INT, {INNER}>",
        "kinds": "ARRAY<STRING>",
        "blobs": "ARRAY<BYTES>",
        "flags": "ARRAY<BOOLEAN>",
        "to_kind": "MAP<STRING, STRING>",
    }
    row = {
        "ints": [1, None],
        "texts": ["a", None],
        "rows": [None],
        "to_text": {"k": None},
        "to_row": {1: None},
        "kinds": [None],
        "blobs": [None],
        "flags": [None],
        "to_kind": {"k": None},
    }
    more = {} if literal is None else {"write_null_string_literal": literal}
    written = encode("protobuf", arrow_schema(columns), [row], options("two.Containers", **more))
    text = literal or ""
    assert rows_of(columns, written, options("two.Containers")) == [
        {
            "ints": [1, 0],
            "texts": ["a", text],
            "rows": [{"x": None, "y": None}],
            "to_text": {"k": text},
            "to_row": {1: {"x": None, "y": None}},
            "kinds": ["UNIVERSAL"],
            "blobs": [b""],
            "flags": [False],
            "to_kind": {"k": "UNIVERSAL"},
        }
    ]


def test_the_later_column_of_a_oneof_wins(options, make):
    row = {"a": 1, "b": 2}
    schema = arrow_schema({"a": "INT", "b": "INT"})
    assert encode("protobuf", schema, [row], options("two.Choice")) == [make("two.Choice", b=2)]
    schema = arrow_schema({"b": "INT", "a": "INT"})
    assert encode("protobuf", schema, [row], options("two.Choice")) == [make("two.Choice", a=1)]


def test_empty_arrays_leave_nothing_on_the_wire(options):
    schema = arrow_schema({"ints": "ARRAY<INT>", "to_text": "MAP<STRING, STRING>"})
    row = {"ints": [], "to_text": {}}
    assert encode("protobuf", schema, [row], options("two.Containers")) == [b""]


def test_equal_maps_give_equal_bytes(options):
    schema = arrow_schema({"to_text": "MAP<STRING, STRING>"})
    pairs = [(f"k{n}", "v") for n in range(50)]
    rows = [{"to_text": dict(pairs)}, {"to_text": dict(reversed(pairs))}]
    first, second = encode("protobuf", schema, rows, options("two.Containers"))
    assert first == second


@pytest.mark.parametrize(
    ("name", "columns", "row", "trouble"),
    [
        ("two.Simple", {"h": "STRING"}, {"h": "NEWS"}, "'h': 'NEWS' is no value of enum"),
        ("two.Simple", {"h": "INT"}, {"h": 9}, "'h': 9 is no value of enum"),
        ("two.Simple", {"u": "INT"}, {"u": -1}, "'u': Value out of range: -1"),
        ("two.Simple", {"a": "INT NOT NULL"}, {"a": None}, "'a': null, but it is NOT NULL"),
        ("two.Strict", {"name": "STRING"}, {"name": "x"}, "id"),
    ],
)
def test_what_cannot_be_written_is_named_by_row_and_column(options, name, columns, row, trouble):
    schema = arrow_schema(columns)
    plugin = build("protobuf", options(name))
    batch = pa.RecordBatch.from_pylist([row], schema=schema)
    with pytest.raises(RecordError) as error:
        plugin.encoder(schema).encode(batch)
    assert str(error.value).startswith("row 0: ")
    assert trouble in str(error.value)


# --- finding the message type -------------------------------------------------------------


def test_a_generated_class_is_found_by_its_path(tmp_path, monkeypatch):
    package = tmp_path / "shop"
    package.mkdir()
    file = descriptor_pb2.FileDescriptorProto(
        name="shop/orders.proto", package="shop", syntax="proto3"
    )
    outer = file.message_type.add(name="Order")
    outer.nested_type.add(name="Line").field.add(name="id", number=1, type=5, label=1)
    (package / "orders_pb2.py").write_text(
        textwrap.dedent(f"""
            from google.protobuf import descriptor_pool
            from google.protobuf.internal import builder

            DESCRIPTOR = descriptor_pool.Default().AddSerializedFile({file.SerializeToString()!r})
            builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
            builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, "shop.orders_pb2", globals())
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    options = {"message-class-name": "shop.orders_pb2.Order.Line"}
    assert rows_of({"id": "INT"}, [b"\x08\x07"], options) == [{"id": 7}]
    assert "shop.orders_pb2" in sys.modules


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("os.path.join", "'os.path.join' is no class of a module generated by protoc"),
        ("com.shop.Outer$Msg", "to use a message's full name, set 'descriptor-file'"),
        ("no_such_pb2.Message", "cannot import 'no_such_pb2'"),
        ("google.protobuf.timestamp_pb2.Nope", "has no message class 'Nope'"),
        ("google.protobuf.timestamp_pb2.DESCRIPTOR", "has no message class 'DESCRIPTOR'"),
    ],
)
def test_a_class_that_is_none_is_refused_when_planned(name, trouble):
    with pytest.raises(OptionError) as error:
        rows_of({"a": "INT"}, [], {"message-class-name": name})
    assert "message-class-name: " in str(error.value)
    assert trouble in str(error.value)


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        (None, "cannot read"),
        (b"", "has no descriptors; write it with 'protoc --include_imports"),
        (b"\xff\xff", "has no descriptors"),
        (
            descriptor_pb2.FileDescriptorSet(
                file=[descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["b.proto"])]
            ).SerializeToString(),
            "lacks 'b.proto', which 'a.proto' imports",
        ),
        (
            descriptor_pb2.FileDescriptorSet(
                file=[descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["a.proto"])]
            ).SerializeToString(),
            "'a.proto' imports itself",
        ),
    ],
)
def test_a_descriptor_file_that_is_none_is_refused(tmp_path, content, trouble):
    path = tmp_path / "types.bin"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OptionError) as error:
        rows_of({"a": "INT"}, [], {"message-class-name": "a.B", "descriptor-file": str(path)})
    assert "descriptor-file: " in str(error.value)
    assert trouble in str(error.value)


def test_a_message_the_file_does_not_describe_is_refused(options):
    with pytest.raises(OptionError, match="describes no message 'two.Simpel'"):
        rows_of({"a": "INT"}, [], options("two.Simpel"))


@pytest.mark.parametrize(
    ("name", "columns", "trouble"),
    [
        ("two.Simple", {"z": "INT"}, "z: message 'two.Simple' has no field of this name"),
        ("two.Simple", {"a": "BIGINT"}, "a: is int32 in Protobuf, which does not fit BIGINT"),
        ("two.Simple", {"b": "INT"}, "b: is int64 in Protobuf, which does not fit INT"),
        ("two.Simple", {"a": "SMALLINT"}, "a: is int32 in Protobuf, which does not fit SMALLINT"),
        ("two.Simple", {"a": "DECIMAL(5, 2)"}, "does not fit DECIMAL(5, 2)"),
        ("two.Simple", {"b": "TIMESTAMP(3)"}, "does not fit TIMESTAMP(3)"),
        ("two.Simple", {"a": "INTERVAL YEAR TO MONTH"}, "does not fit INTERVAL YEAR TO MONTH"),
        ("two.Simple", {"f": "BYTES"}, "f: is string in Protobuf, which does not fit BYTES"),
        ("two.Simple", {"g": "STRING"}, "g: is bytes in Protobuf, which does not fit STRING"),
        ("two.Simple", {"h": "BOOLEAN"}, "h: is two.Simple.Corpus in Protobuf"),
        ("two.Simple", {"a": "ARRAY<INT>"}, "a: is int32 in Protobuf"),
        ("two.Containers", {"ints": "INT"}, "ints: is repeated int32 in Protobuf"),
        ("two.Containers", {"ints": "ARRAY<BIGINT>"}, "ints: is repeated int32 in Protobuf"),
        ("two.Containers", {"inner": "STRING"}, "inner: is two.Containers.Inner in Protobuf"),
        ("two.Containers", {"inner": "ROW<q INT>"}, "inner.q: message 'two.Containers.Inner' has"),
        ("two.Containers", {"to_text": "MAP<STRING, INT>"}, "to_text (value): is string"),
        ("two.Containers", {"to_text": "MULTISET<STRING>"}, "to_text: is map<string, string>"),
        ("two.Containers", {"to_text": "ARRAY<STRING>"}, "to_text: is map<string, string>"),
    ],
)
def test_columns_that_do_not_fit_are_refused_when_planned(options, name, columns, trouble):
    with pytest.raises(OptionError) as error:
        rows_of(columns, [], options(name))
    assert trouble in str(error.value)


@pytest.mark.parametrize("option", ["ignore-parse-errors", "read-default-values"])
def test_switches_are_true_or_false(options, option):
    with pytest.raises(OptionError, match=f"{option}: 'maybe' is not true or false"):
        rows_of({"a": "INT"}, [], {**options("two.Simple"), option: "maybe"})


def test_the_message_type_is_required():
    with pytest.raises(OptionError, match="message-class-name: required but missing"):
        rows_of({"a": "INT"}, [], {})
