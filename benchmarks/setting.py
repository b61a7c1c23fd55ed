"""One sitting: the broker, the filled topics, and a warm process per side."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from streamcore.testing.services import KafkaBroker, SchemaRegistry
from streamcore.testing.services.kinesis import KinesisEmulator

from .data import AVRO_SCHEMA, Event, encoder
from .filling import DISTINCT, produce, repeat
from .formats import json_loop, json_messages, rate
from .sides import FlinkSide, SparkSide


@dataclass
class Setting:
    """What a case needs to run; services and sides start when first asked for."""

    rows: int
    """Messages of the one large topic."""
    fewer: int
    """Messages of the other cases."""
    sample: int
    """Messages that sides are compared on and warmed up with."""
    runs: int
    warmups: int
    cores: int
    with_flink: bool
    quick: bool
    _open: ExitStack
    pace: int = 1
    """How many times as many messages are read and written here as on a slow machine."""
    _topics: dict[str, int] = field(default_factory=dict)

    @property
    def servers(self) -> str:
        return self.broker.bootstrap_servers

    @functools.cached_property
    def broker(self) -> KafkaBroker:
        return self._open.enter_context(KafkaBroker())

    def topic(self, format_name: str, rows: int | None = None, partitions: int = 4) -> str:
        """A topic with this many events, filled once."""
        count = rows or self.rows
        return self.grown(
            f"bench-{format_name}-{count}-{partitions}", format_name, count, partitions
        )

    def grown(self, name: str, format_name: str, rows: int, partitions: int = 4) -> str:
        """A topic that holds this many events by now."""
        number = self._schema_id if format_name == "avro-confluent" else None
        distinct = DISTINCT // partitions * partitions
        if format_name.startswith("json-"):  # of large ones a few are enough, and fit into memory
            distinct = min(distinct, max(2_000, 40_000_000 // int(format_name[5:])))
        seed = f"bench-{format_name}-{distinct}-{partitions}"
        return self.filled(name, encoder(format_name, number), rows, partitions, distinct, seed)

    def filled(
        self,
        name: str,
        write: Callable[[Event], bytes],
        rows: int,
        partitions: int = 4,
        distinct: int = DISTINCT,
        seed: str = "",
    ) -> str:
        """A topic that holds this many messages by now: what is missing is added.

        Those that differ are written once, to the topic `seed`, and repeated from there.
        """
        seed = seed or f"{name}-seed"
        if name not in self._topics:
            self.broker.create_topic(name, partitions)
            self._topics[name] = 0
        rounds, left = divmod(max(0, rows - self._topics[name]), distinct)
        if rounds and name != seed:
            self.filled(seed, write, distinct, partitions, distinct, seed)
            repeat(self.broker, seed, name, partitions, rounds)
        else:
            left += rounds * distinct
        if left:
            produce(self.servers, name, write, left, partitions)
        self._topics[name] = max(rows, self._topics[name])
        return name

    @functools.cached_property
    def registry(self) -> SchemaRegistry:
        return self._open.enter_context(SchemaRegistry())

    @functools.cached_property
    def kinesis(self) -> KinesisEmulator:
        return self._open.enter_context(KinesisEmulator())

    @functools.cached_property
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

    def at_the_end(self, work: Callable[[], object]) -> None:
        """Do this when the sitting is over, before what is open by now is closed."""
        self._open.callback(work)

    def forget_the_dead(self) -> None:
        """Sides that have ended start anew when they are next asked for."""
        for name in ("ours", "spark", "flink"):
            if (side := vars(self).get(name)) and not side.alive:
                del vars(self)[name]

    def _started(self, side):  # type: ignore[no-untyped-def]
        self._open.callback(side.close)
        return side


def _pace() -> int:
    """1, 2 or 4, by what JSON costs in plain Python: runs are to last seconds on any machine."""
    messages = json_messages(10_000)
    fastest = max(rate(json_loop, [messages], len(messages)) for _ in range(5))
    return 4 if fastest > 800_000 else 2 if fastest > 450_000 else 1


@contextmanager
def sitting(
    runs: int | None, rows: int | None, *, quick: bool, with_flink: bool
) -> Iterator[Setting]:
    """Close all that was opened, whatever happens."""
    pace = 1 if quick else _pace()
    many = rows or (400_000 if quick else 3_500_000 * pace)
    with ExitStack() as stack:
        yield Setting(
            rows=many,
            fewer=(fewer := min(many, 150_000 if quick else 800_000)),
            sample=min(fewer, 200_000),
            runs=runs or (3 if quick else 5),
            warmups=1,
            cores=os.cpu_count() or 2,
            with_flink=with_flink,
            quick=quick,
            _open=stack,
            pace=pace,
        )
