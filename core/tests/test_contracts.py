"""The contracts pass for honest plugins, and each of them catches the plugin that breaks it."""

import datetime as dt
import json
import pickle

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from streamcore import (
    Connector,
    CredentialProvider,
    Credentials,
    Decoded,
    Format,
    Partitioner,
    RecordError,
    RecordFormat,
    Rejected,
    Secret,
    option,
)
from streamcore.partitioners import Default, Fixed, RoundRobin
from streamcore.testing import (
    ConnectorContract,
    CredentialsContract,
    FormatContract,
    PartitionerContract,
    arrow_schema,
)
from streamcore.testing.strategies import EVERY_TYPE, rows, schemas, sql_types
from streamcore.types import arrow_field, sql_text


class TestDefault(PartitionerContract):
    plugin = Default()


class TestFixed(PartitionerContract):
    plugin = Fixed()


class TestRoundRobin(PartitionerContract):
    plugin = RoundRobin()


class Pickled(RecordFormat):
    """Every type there is, the lazy way; good enough to test the contract with."""

    identifier = "pickled"

    def decode_record(self, payload, schema):
        row = pickle.loads(payload)
        if not isinstance(row, dict) or row.keys() != set(schema.names):
            raise RecordError("not a row")
        yield row

    def encode_record(self, row, schema):
        return pickle.dumps(row)


class TestPickled(FormatContract):
    plugin = Pickled()
    examples = 10


# --- strategies ----------------------------------------------------------------------


@settings(max_examples=150, deadline=None, database=None)
@given(st.data())
def test_made_rows_fit_their_schema_and_come_back_equal(data):
    schema = data.draw(schemas())
    made = data.draw(st.lists(rows(schema), max_size=4))
    batch = pa.RecordBatch.from_pylist(made, schema=schema)
    batch.validate(full=True)
    assert batch.to_pylist(maps_as_pydicts="strict") == made


@settings(max_examples=150, deadline=None, database=None)
@given(sql_types())
def test_made_types_are_types_of_ours(text):
    field = arrow_field("c", text)
    assert arrow_field("c", sql_text(field)).equals(field)


def test_every_sort_of_type_is_tried():
    sorts = {
        str(arrow_field("c", text).type).partition("[")[0].partition("<")[0] for text in EVERY_TYPE
    }
    assert {"bool", "double", "string", "binary", "date32", "list", "map", "struct"} <= sorts
    assert {"time32", "timestamp", "duration", "decimal128(10, 2)"} <= sorts


# --- what the contracts catch ----------------------------------------------------------


settings.register_profile("found-is-enough", phases=[Phase.generate])  # no time for shrinking


def caught(contract, plugin, test, *arguments, **attributes):
    """Run one test of a contract on a plugin, and return what it complains about."""
    subject = type("Subject", (contract,), {"plugin": plugin, "examples": 20, **attributes})()
    settings.load_profile("found-is-enough")
    try:
        with pytest.raises(BaseException) as error:  # noqa: PT011 - some come in groups
            getattr(subject, test)(*arguments)
    finally:
        settings.load_profile("default")
    assert not isinstance(error.value, TypeError), error.value
    return str(error.value)


class Json(RecordFormat):
    """An honest little format for the breakers to start from."""

    identifier = "small-json"

    def decode_record(self, payload, schema):
        yield json.loads(payload)

    def encode_record(self, row, schema):
        return json.dumps(row).encode()


COLUMNS = {"a": "BIGINT", "b": "STRING"}


class TestHonest(FormatContract):
    plugin = Json()
    types = ("BIGINT", "STRING", "BOOLEAN", "ARRAY<BIGINT>", "ROW<a BIGINT, b STRING>")


class Lossy(Json):
    """Forgets large numbers."""

    identifier = "lossy"

    def encode_record(self, row, schema):
        return json.dumps(
            {k: v if not isinstance(v, int) else v % 1000 for k, v in row.items()}
        ).encode()


class Raising:
    def __init__(self, inner):
        self.inner = inner

    def decode(self, messages):
        for message in messages:
            json.loads(message or b"null")
        return self.inner.decode(messages)


class Raises(Json):
    """Raises for a bad message."""

    identifier = "raises"

    def decoder(self, schema, columns=None, metadata=()):
        return Raising(super().decoder(schema, columns, metadata))


class Unprojected(Json):
    """Ignores which columns are wanted."""

    identifier = "unprojected"

    def decoder(self, schema, columns=None, metadata=()):
        return super().decoder(schema)


class FirstBatchOnly(Json):
    """Keeps state between batches that it should not keep."""

    identifier = "first-batch-only"

    def decoder(self, schema, columns=None, metadata=()):
        inner, calls = super().decoder(schema, columns), []

        class Once:
            def decode(self, messages):
                calls.append(1)
                return inner.decode(messages if len(calls) == 1 else [])

        return Once()


class Silent(Json):
    """Swallows bad messages."""

    identifier = "silent"

    def decode_record(self, payload, schema):
        try:
            yield json.loads(payload)
        except ValueError:
            return


class Twice(Json):
    """Rejects with places out of range."""

    identifier = "twice"

    def decoder(self, schema, columns=None, metadata=()):
        class Wild:
            def decode(self, messages):
                empty = pa.RecordBatch.from_pylist([], schema=schema)
                none = pa.array([], pa.int32())
                return Decoded(empty, none, rejected=[Rejected(99, "far away")])

        return Wild()


@pytest.mark.parametrize(
    ("plugin", "test", "arguments"),
    [
        (Lossy(), "test_it_reads_back_what_it_writes", ["BIGINT"]),
        (Lossy(), "test_it_reads_back_rows_of_several_columns", []),
        (Raises(), "test_no_message_makes_it_raise", []),
        (Raises(), "test_bad_messages_are_reported_and_cost_no_good_ones", []),
        (Silent(), "test_bad_messages_are_reported_and_cost_no_good_ones", []),
        (Unprojected(), "test_decoding_some_columns_equals_selecting_them", []),
        (FirstBatchOnly(), "test_batches_split_anyhow_give_the_same_rows", []),
        (Twice(), "test_no_message_makes_it_raise", []),
    ],
)
def test_a_format_that_breaks_its_contract_is_caught(plugin, test, arguments):
    assert caught(FormatContract, plugin, test, *arguments, columns=COLUMNS)


class Careless(Format):
    """no sentence"""

    identifier = "Careless"

    password: str = option("password", "the password", default="")
    again: str = option("password", "Again.", default="")


class Talkative(Format):
    """Shows its secret."""

    identifier = "talkative"

    pin: Secret = option("pin", "A pin.", default=Secret(""))

    def __repr__(self):
        return f"Talkative({self.pin.reveal()})"


@pytest.mark.parametrize(
    ("plugin", "test", "complaint"),
    [
        (Careless(), "test_its_identifier_is_lower_case_words", ""),
        (Careless(), "test_it_says_what_it_is", "should be a sentence"),
        (Careless(), "test_every_option_is_documented_by_a_sentence", "full stop"),
        (Careless(), "test_no_key_is_declared_twice", "two options read the same key"),
        (Careless(), "test_options_that_look_secret_are_secrets", "declare it as Secret"),
        (Talkative(), "test_it_hides_its_secrets", "pin"),
    ],
)
def test_a_careless_plugin_is_caught(plugin, test, complaint):
    assert complaint in caught(FormatContract, plugin, test)


def test_a_plugin_that_drags_in_a_library_is_caught(tmp_path, monkeypatch):
    (tmp_path / "dragging.py").write_text("import pyarrow\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugin = type("Dragging", (Json,), {"__module__": "dragging", "__doc__": "Drags."})()
    said = caught(FormatContract, plugin, "test_importing_it_is_cheap")
    assert "import " in said
    assert "pyarrow" in said


class Wild(Partitioner):
    """Chooses partitions that do not exist."""

    identifier = "wild"

    def choose(self, row, key, target):
        return target.partitions

    def choose_key(self, row, target):
        return ""


def test_a_partitioner_out_of_range_is_caught():
    for test in (
        "test_it_chooses_existing_partitions_only",
        "test_it_chooses_usable_partition_keys",
    ):
        assert caught(PartitionerContract, Wild(), test)


class Open(CredentialProvider):
    """Hands out a bare expiry."""

    identifier = "open"

    password: Secret = option("password", "The password.")

    def fetch(self, scope):
        return Credentials({"password": self.password}, dt.datetime(2030, 1, 1))


class TestOpenButFine(CredentialsContract):
    plugin = Open(password=Secret("hunter2"))

    def test_what_it_fetches_is_secret(self, tmp_path, monkeypatch):
        with pytest.raises(AssertionError, match="expiry needs a zone"):
            super().test_what_it_fetches_is_secret(tmp_path, monkeypatch)


class Nothing(Connector):
    """Does nothing, and forgets the checks of its base."""

    identifier = "nothing"

    def problems(self):
        yield from ()


def test_a_connector_that_does_nothing_is_caught():
    test = "test_it_can_do_something_and_explains_what_it_cannot"
    assert "implement one of" in caught(ConnectorContract, Nothing(), test)
    forgot = caught(ConnectorContract, Nothing(), "test_checks_of_every_connector_are_kept")
    assert "super().problems()" in forgot


# --- the easy door to formats --------------------------------------------------------------


def test_a_row_that_does_not_fit_costs_one_message():
    schema = arrow_schema({"a": "INT NOT NULL", "b": "STRING"})
    messages = [b'{"a": 1}', b'{"a": "x"}', None, b'{"b": "no a"}', b"{", b'{"a": 2, "b": "y"}']
    decoded = Json().decoder(schema).decode(messages)
    assert decoded.rows.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "y"}]
    assert decoded.origin.to_pylist() == [0, 5]
    assert [index for index, _ in decoded.rejected] == [1, 3, 4]
    assert decoded.rejected[1].reason == "column 'a' is NOT NULL but has no value"


def test_a_row_that_cannot_be_written_is_named():
    schema = arrow_schema({"a": "BYTES"})
    batch = pa.RecordBatch.from_pylist([{"a": None}, {"a": b"x"}], schema=schema)
    with pytest.raises(RecordError, match=r"^row 1: TypeError: "):
        Json().encoder(schema).encode(batch)
