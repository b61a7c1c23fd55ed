"""What holds for every connector."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from ...api import Connector
from ...errors import PluginError
from ...table import ROW_KINDS, Column, Table
from ...types import arrow_field
from .plugin import PluginContract

if TYPE_CHECKING:
    from ...table import MetadataKey

SIDES = ("reader", "stream_reader", "writer", "stream_writer")


class ConnectorContract(PluginContract):
    """Tests for a connector; what it does with a real system is for its own tests.

    class TestTicker(ConnectorContract):
        plugin = Ticker()
        columns = {"symbol": "STRING", "price": "DECIMAL(10, 2)"}
    """

    plugin: ClassVar[Connector]
    columns: ClassVar[Mapping[str, str]] = {"id": "BIGINT", "name": "STRING"}
    """The columns of a table it can read or write."""
    primary_key: ClassVar[tuple[str, ...]] = ()

    @property
    def table(self) -> Table:
        columns = tuple(Column(name, text) for name, text in self.columns.items())
        return Table(columns, "t", self.primary_key)

    def test_it_can_do_something_and_explains_what_it_cannot(self) -> None:
        able = [side for side in SIDES if self.plugin.can(side)]
        assert able, f"implement one of {', '.join(SIDES)}"
        for side in set(SIDES) - set(able):
            with pytest.raises(PluginError, match=f"connector '{self.plugin.identifier}'"):
                getattr(self.plugin, side)(self.table)

    def test_its_readers_and_writers_survive_the_trip_to_a_worker(self) -> None:
        serializer: Any = import_module("pyspark.serializers").CloudPickleSerializer()
        for side in SIDES:
            if self.plugin.can(side):
                made = getattr(self.plugin, side)(self.table)
                copy = serializer.loads(serializer.dumps(made))
                assert type(copy).__qualname__ == type(made).__qualname__

    def test_its_metadata_columns_have_types_and_sentences(self) -> None:
        keys: Mapping[str, MetadataKey] = self.plugin.metadata()
        for name, key in keys.items():
            assert arrow_field(name, key.type) is not None
            assert key.doc.endswith("."), f"{name}: document it with a sentence"

    def test_it_names_real_row_kinds(self) -> None:
        assert set(ROW_KINDS) >= self.plugin.produces()
        assert set(ROW_KINDS) >= self.plugin.accepts()

    def test_it_accepts_its_own_example_table(self) -> None:
        for writing in (False, True):
            sides = ("writer", "stream_writer") if writing else ("reader", "stream_reader")
            if any(self.plugin.can(side) for side in sides):
                assert list(self.plugin.table_problems(self.table, writing=writing)) == []

    def test_checks_of_every_connector_are_kept(self) -> None:
        aligned = dataclasses.replace(self.plugin, alignment_group="g")
        found = " ".join(str(problem) for problem in aligned.problems())
        assert "scan.watermark.alignment.group" in found, "call super().problems()"
