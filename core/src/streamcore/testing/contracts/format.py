"""What holds for every format that both reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ...api import Decoded, Format
from ...table import ROW_KINDS
from ...types import arrow_field, arrow_schema
from ..strategies import EVERY_TYPE, SCALARS, rows
from .plugin import PluginContract

if TYPE_CHECKING:
    import pytest

DELETE = ROW_KINDS.index("-D")


class FormatContract(PluginContract):
    """Tests for a format: round trips of every type it takes, projection, bad input.

    class TestLines(FormatContract):
        plugin = Lines()
        types = ["STRING"]
    """

    plugin: ClassVar[Format]
    types: ClassVar[Sequence[str]] = EVERY_TYPE
    """The SQL types to try; those that `schema_problems` refuses are left out."""
    columns: ClassVar[Mapping[str, str]] = {}
    """The columns of the tests with several columns; by default, one of each scalar type."""
    junk: ClassVar[Sequence[bytes]] = (b"\x00\xff\xfe no such message",)
    """Messages that are no rows."""
    examples: ClassVar[int] = 30
    """How many batches of rows each round trip tries."""

    def storable(self, sql_type: str, value: Any) -> bool:
        """Tell whether the format can carry this value; for those that cannot carry them all."""
        return True

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Called by pytest: one test for each type the format says it takes."""
        if "sql_type" in metafunc.fixturenames:
            taken = [text for text in cls.types if cls.takes({"v": text})]
            assert taken, f"format '{cls.plugin.identifier}' takes none of {', '.join(cls.types)}"
            metafunc.parametrize("sql_type", taken)

    @classmethod
    def takes(cls, columns: Mapping[str, str]) -> bool:
        """Tell whether the format says that it can read and write these columns."""
        schema = arrow_schema(columns)
        return not any(
            list(cls.plugin.schema_problems(schema, writing=writing)) for writing in (False, True)
        )

    def several(self) -> dict[str, str]:
        """Columns for the tests that need more than one; fewer where the format takes no more."""
        if self.columns:
            return dict(self.columns)
        wanted: dict[str, str] = {}
        for text in (text for text in self.types if text in SCALARS):
            more = {**wanted, f"c{len(wanted)}": text}
            if self.takes(more):
                wanted = more
        return wanted or {"v": next(text for text in self.types if self.takes({"v": text}))}

    # --- round trips -----------------------------------------------------------------

    def test_it_reads_back_what_it_writes(self, sql_type: str) -> None:
        columns = {"v": sql_type}
        schema = arrow_schema(columns)

        def check(sent: list[dict[str, Any]]) -> None:
            decoded = self._decode(schema, self._encode(schema, sent))
            assert not decoded.rejected
            assert _plain(decoded.rows) == _plain(_batch(schema, sent))

        self._try(columns, check)

    def test_it_reads_back_rows_of_several_columns(self) -> None:
        columns = self.several()
        schema = arrow_schema(columns)

        def check(sent: list[dict[str, Any]]) -> None:
            decoded = self._decode(schema, self._encode(schema, sent))
            assert _plain(decoded.rows) == _plain(_batch(schema, sent))

        self._try(columns, check)

    def test_the_kind_of_a_row_survives_as_far_as_the_format_carries_it(self) -> None:
        columns = self.several()
        schema = arrow_schema(columns)

        def check(sent: list[dict[str, Any]]) -> None:
            kinds = [DELETE if self.plugin.changelog and n % 2 else 0 for n in range(len(sent))]
            encoder = self.plugin.encoder(schema)
            messages = encoder.encode(_batch(schema, sent), pa.array(kinds, pa.int8()))
            decoded = self._decode(schema, list(messages))
            got = [0] * len(sent) if decoded.kinds is None else decoded.kinds.to_pylist()
            assert got == kinds

        self._try(columns, check)

    def test_batches_split_anyhow_give_the_same_rows(self) -> None:
        columns = self.several()
        schema = arrow_schema(columns)

        @settings(self._settings())
        @given(self._rows(columns, 8), st.lists(st.integers(0, 8), max_size=4))
        def check(sent: list[dict[str, Any]], cuts: list[int]) -> None:
            messages = self._encode(schema, sent)
            whole = _plain(self._decode(schema, messages).rows)
            edges = [0, *sorted(min(cut, len(messages)) for cut in cuts), len(messages)]
            decoder = self.plugin.decoder(schema)
            parts = [decoder.decode(messages[start:stop]) for start, stop in pairwise(edges)]
            assert [row for part in parts for row in _plain(part.rows)] == whole

        check()

    def test_decoding_some_columns_equals_selecting_them(self) -> None:
        columns = self.several()
        schema = arrow_schema(columns)

        @settings(self._settings())
        @given(self._rows(columns, 5), st.permutations(list(columns)), st.integers(1, len(columns)))
        def check(sent: list[dict[str, Any]], order: list[str], count: int) -> None:
            wanted = order[:count]
            messages = self._encode(schema, sent)
            whole = _plain(self._decode(schema, messages).rows)
            decoded = self.plugin.decoder(schema, wanted).decode(messages)
            assert decoded.rows.schema.names == wanted
            expected = [{name: row[name] for name in wanted} for row in whole]
            assert _plain(decoded.rows) == expected

        check()

    def test_rows_have_exactly_the_columns_asked_for(self) -> None:
        schema = arrow_schema(self.several())
        decoded = self.plugin.decoder(schema).decode([])
        assert decoded.rows.num_rows == 0
        assert decoded.rows.schema.equals(schema), "names, types and nullability should be equal"

    # --- bad input ---------------------------------------------------------------------

    def test_bad_messages_are_reported_and_cost_no_good_ones(self) -> None:
        columns = self.several()
        schema = arrow_schema(columns)

        @settings(self._settings())
        @given(self._rows(columns, 4))
        def check(sent: list[dict[str, Any]]) -> None:
            good = self._encode(schema, sent)
            mixed: list[bytes | None] = [*good[:2], *self.junk, *good[2:]]
            decoded = self._decode(schema, mixed)
            places = list(range(len(good[:2]), len(good[:2]) + len(self.junk)))
            assert [index for index, _ in decoded.rejected] == places or (
                not decoded.rejected and decoded.ignored == len(places)
            )
            assert all(reason.strip() for _, reason in decoded.rejected)
            assert _plain(decoded.rows) == _plain(self._decode(schema, good).rows)

        check()

    def test_no_message_makes_it_raise(self) -> None:
        schema = arrow_schema(self.several())
        anything = st.one_of(st.none(), st.binary(max_size=200))

        @settings(self._settings(), max_examples=4 * self.examples)
        @given(st.lists(anything, max_size=5))
        def check(messages: list[bytes | None]) -> None:
            decoded = self._decode(schema, messages)
            places = [index for index, _ in decoded.rejected]
            assert places == sorted(set(places)), "each message is rejected once, in order"
            assert all(0 <= place < len(messages) for place in places)

        check()

    def test_its_metadata_columns_have_types_and_sentences(self) -> None:
        for name, key in self.plugin.metadata_keys.items():
            assert arrow_field(name, key.type) is not None
            assert key.doc.endswith("."), f"{name}: document it with a sentence"

    # --- the machinery -----------------------------------------------------------------

    def _settings(self) -> settings:
        slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
        return settings(
            max_examples=self.examples, deadline=None, database=None, suppress_health_check=slow
        )

    def _rows(self, columns: Mapping[str, str], most: int = 5) -> st.SearchStrategy[Any]:
        fit = rows(arrow_schema(columns)).filter(
            lambda row: all(self.storable(columns[name], value) for name, value in row.items())
        )
        return st.lists(fit, min_size=1, max_size=most)

    def _try(self, columns: Mapping[str, str], check: Callable[[list[Any]], None]) -> None:
        settings(self._settings())(given(self._rows(columns))(check))()

    def _encode(self, schema: pa.Schema, sent: list[dict[str, Any]]) -> list[bytes | None]:
        messages = list(self.plugin.encoder(schema).encode(_batch(schema, sent)))
        assert len(messages) == len(sent), "one message per row"
        return messages

    def _decode(self, schema: pa.Schema, messages: Sequence[bytes | None]) -> Decoded:
        decoded = self.plugin.decoder(schema).decode(messages)
        _assert_consistent(decoded, len(messages))
        return decoded


def _assert_consistent(decoded: Decoded, messages: int) -> None:
    count = decoded.rows.num_rows
    if decoded.origin is None:
        assert count == messages, "without `origin` there is exactly one row per message"
    else:
        origin = decoded.origin.to_pylist()
        assert len(origin) == count
        assert origin == sorted(origin), "rows should keep the order of their messages"
        assert all(0 <= index < messages for index in origin)
    assert decoded.kinds is None or len(decoded.kinds) == count


def _batch(schema: pa.Schema, sent: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(sent, schema=schema)


def _plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return list(batch.to_pylist(maps_as_pydicts="lossy"))
