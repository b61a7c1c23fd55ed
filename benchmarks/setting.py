"""One sitting: the broker, the filled topics, and a warm process per side."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from streamcore.testing.services import KafkaBroker, SchemaRegistry

from .data import AVRO_SCHEMA, encoder, produce
from .sides import FlinkSide, SparkSide


@dataclass
class Setting:
    """What a case needs to run; sides start when first asked for."""

    broker: KafkaBroker
    rows: int
    runs: int
    warmups: int
    cores: int
    with_flink: bool
    quick: bool
    _open: ExitStack
    _topics: dict[str, str] = field(default_factory=dict)

    @property
    def fewer(self) -> int:
        """Rows of the cases that only widen a picture."""
        return self.rows // 6

    @property
    def servers(self) -> str:
        return self.broker.bootstrap_servers

    def topic(self, format_name: str, rows: int | None = None, partitions: int = 4) -> str:
        """A topic with this many events, filled once."""
        count = rows or self.rows
        name = f"bench-{format_name}-{count}-{partitions}"
        if name not in self._topics:
            self.broker.create_topic(name, partitions)
            number = self._schema_id() if format_name == "avro-confluent" else None
            large = format_name.startswith("json-")  # a few are enough, and fit into memory
            distinct = 2_000 if large else 200_000
            write = encoder(format_name, number)
            produce(self.servers, name, write, count, partitions, distinct)
            self._topics[name] = name
        return name

    @functools.cached_property
    def registry(self) -> SchemaRegistry:
        return self._open.enter_context(SchemaRegistry())

    def _schema_id(self) -> int:
        from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

        client = SchemaRegistryClient({"url": self.registry.url})
        return int(client.register_schema("bench-value", Schema(json.dumps(AVRO_SCHEMA), "AVRO")))

    @functools.cached_property
    def ours(self) -> SparkSide:
        return self._started(SparkSide(self.cores, peer=False))

    @functools.cached_property
    def spark(self) -> SparkSide:
        return self._started(SparkSide(self.cores, peer=True))

    @functools.cached_property
    def flink(self) -> FlinkSide | None:
        return self._started(FlinkSide(self.cores)) if self.with_flink else None

    def _started(self, side):  # type: ignore[no-untyped-def]
        self._open.callback(side.close)
        return side


@contextmanager
def sitting(runs: int | None, *, quick: bool, with_flink: bool) -> Iterator[Setting]:
    """Open everything, and close it again whatever happens."""
    with ExitStack() as stack:
        broker = stack.enter_context(KafkaBroker())
        yield Setting(
            broker,
            rows=1_000_000 if quick else 12_000_000,
            runs=runs or (3 if quick else 5),
            warmups=1,
            cores=os.cpu_count() or 2,
            with_flink=with_flink,
            quick=quick,
            _open=stack,
        )
