"""Where rows go to: messages handed to a connector, one write for all tables of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from streamcore import ROW_KIND, Column, Secret, Table
from streamcore.registry import installed
from streamcore.spark.carrier import pack

from . import ends
from .errors import Problems
from .messages import Target
from .model import Job, Sink
from .packed_writer import Packing, write
from .routing import TableId
from .row_sql import TABLE
from .sections import Section

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TYPES = ("upsert-kafka", "kafka", "kinesis")
COMMON = (
    "type",
    "name",
    "include.schema.changes",
    "exclude.schema.changes",
    "sink.add-tableId-to-header-enabled",
    "sink.custom-header",
    "sink.tableId-to-topic.mapping",
)
"""Keys that the job file itself understands, whatever the connector."""
_KAFKA = ("value.format", "key.format", "format", "partition.strategy", "topic")
_PLACEHOLDER = "{table}"
_PARTITIONERS = "streamcore_sql.ingestion.partitioning"


class Strategy(Enum):
    """The choices of `partition.strategy`."""

    ALL_TO_ZERO = "all-to-zero"
    HASH_BY_KEY = "hash-by-key"


class ValueFormat(Enum):
    """The envelopes that a sink without tombstones can write."""

    DEBEZIUM = "debezium-json"
    CANAL = "canal-json"


class KeyFormat(Enum):
    """How `kafka` writes keys."""

    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True)
class SinkPlan:
    """How a job writes."""

    sink: Sink
    options: Mapping[str, str | Secret]
    envelope: str
    key_style: str
    writing: Mapping[str, str]
    """How JSON rows are to be written."""
    topic: str = ""
    """The one topic of all tables; empty: each has its own."""
    partitioner: str = ""
    exactly_once: bool = False
    parallelism: int | None = None
    notes: Sequence[str] = ()

    @property
    def needs_key(self) -> bool:
        return self.envelope == "upsert"

    def target(self, name: str) -> Target:
        """Where the rows of a table go that is called `name` here."""
        topic = self.topic or self.sink.topics.get(name, name)
        if self.sink.type == "kinesis":
            topic = str(self.options["stream.arn"]).replace(_PLACEHOLDER, name)
        return Target(TableId.of(name), topic)

    def write(
        self, rows: DataFrame, packing: Packing, topics: Sequence[str], *, first: bool
    ) -> None:
        """Write rows to these topics; `first` if none of them was ever written to."""
        if self.sink.type == "kinesis":
            for arn in topics:
                self._put(rows, packing, arn)
            return
        columns = [Column("key", "BYTES", not self.needs_key)]
        columns += [] if self.needs_key else [Column("place", "STRING")]
        columns.append(Column("value", "BYTES"))
        options: dict[str, str | Secret] = {**self.options, "topic": ";".join(topics)}
        if len(topics) > 1:
            columns.append(Column("topic", "STRING", metadata="topic"))
        if self.sink.headers or self.sink.table_headers:
            columns.append(Column("headers", "MAP<STRING, BYTES>", metadata="headers"))
        if self.needs_key:
            columns.append(Column(ROW_KIND, "STRING", metadata="row-kind", virtual=True))
        if first and self.exactly_once:
            options["sink.missing-marker"] = "write"
        table = Table(tuple(columns), self.sink.name or "sink", ("key",) if self.needs_key else ())
        names = tuple(column.name for column in columns)
        write(rows, pack(options, table), replace(packing, columns=names))

    def _put(self, rows: DataFrame, packing: Packing, arn: str) -> None:
        """Write the tables of one stream; records have their own partition key."""
        columns = (Column("place", "STRING"), Column("value", "BYTES"))
        table = Table(columns, self.sink.name or "sink", (), ("place",))
        own = [
            replace(plan, targets=tuple(t for t in plan.targets if t.topic == arn))
            for plan in packing.plans
        ]
        plans = tuple(plan for plan in own if plan.targets)
        names = [str(plan.table) for plan in plans]
        options = pack({**self.options, "stream.arn": arn}, table)
        mine = replace(packing, plans=plans, columns=("place", "value"))
        write(rows.where(rows[TABLE].isin(names)), options, mine)


def plan_sink(job: Job, name: str, problems: Problems) -> SinkPlan | None:
    """Check the sink's options; `name` is the job's."""
    sink = job.sink
    if not sink.type:
        return None
    if sink.type not in TYPES:
        if sink.type in installed().names("connector"):
            trouble = f"sink: type: '{sink.type}' takes no rows of many tables"
            hint = f"Choose one of {', '.join(TYPES)}, or write a job in SQL."
            problems.add(trouble, sink.node.members["type"], hint)
        else:
            ends.build(sink, "sink", {}, problems, COMMON)
        return None
    section = Section(sink.node, "sink", problems)
    reader = {"upsert-kafka": _upsert, "kafka": _kafka, "kinesis": _kinesis}[sink.type]
    if sink.topics and sink.type != "kafka":
        node = sink.node.members["sink.tableId-to-topic.mapping"]
        trouble = f"sink: sink.tableId-to-topic.mapping: is for type 'kafka', not '{sink.type}'"
        problems.add(trouble, node, "Name the topics with 'route'.", key=True)
    return reader(job, name, section, problems)


def _upsert(job: Job, name: str, section: Section, problems: Problems) -> SinkPlan | None:
    sink = job.sink
    for key in ("key.format", "value.format"):
        if (text := section.text(key)) and text.lower() != "json":
            trouble = f"sink: {key}: a job writes 'json' to 'upsert-kafka', not '{text}'"
            problems.add(trouble, sink.nodes[key], "Write the job in SQL for other formats.")
            return None
    if "topic" in sink.options:
        trouble = "sink: topic: each table has a topic of its own"
        problems.add(trouble, sink.nodes["topic"], "Name the topics with 'route'.", key=True)
        return None
    given = _exactly_once(job, name)
    whole = {**given, "topic": "any", "key.format": "json", "value.format": "json"}
    connector, notes = ends.build(sink, "sink", whole, problems, COMMON)
    if connector is None:
        return None
    for rule in job.transforms:
        if rule.partition_keys:
            node = rule.node.members["partition-keys"]
            hint = "Leave it out: rows of one key must stay in one partition."
            problems.add("partition-keys: 'upsert-kafka' partitions by the key", node, hint)
    kept, writing = _apart(given, ("json.", "value.json.", "key.json."))
    options = {
        **{key: value for key, value in kept.items() if key not in ("key.format", "value.format")},
        "connector": "upsert-kafka",
        "key.format": "raw",
        "value.format": "raw",
        "value.fields-include": "EXCEPT_KEY",
    }
    return SinkPlan(
        sink,
        options,
        "upsert",
        "json",
        writing,
        exactly_once=_is_exact(given),
        parallelism=_parallelism(job, given),
        notes=notes,
    )


def _kafka(job: Job, name: str, section: Section, problems: Problems) -> SinkPlan | None:
    sink = job.sink
    envelope = _envelope(section)
    key_format = section.choice("key.format", KeyFormat, KeyFormat.JSON)
    strategy = section.choice("partition.strategy", Strategy, Strategy.ALL_TO_ZERO)
    if section.value("debezium-json.include-schema.enabled", bool, False):
        node = sink.nodes["debezium-json.include-schema.enabled"]
        trouble = "sink: debezium-json.include-schema.enabled: schemas are not written"
        problems.add(trouble, node, "Leave it out, or set it to false.")
    ours = [*_KAFKA, "debezium-json.include-schema.enabled"]
    given = {key: text for key, text in _exactly_once(job, name).items() if key not in ours}
    kept, writing = _apart(given, (f"{envelope}.", f"value.{envelope}."))
    topic = str(sink.options.get("topic", ""))
    if topic and sink.topics:
        node = sink.node.members["sink.tableId-to-topic.mapping"]
        trouble = f"sink: {node.key}: 'topic' takes the rows of every table"
        problems.add(trouble, node, "Leave one of them out.", key=True)
    checked = {**kept, "topic": topic or "any", "format": envelope}
    checked |= {f"{envelope}.{key}": text for key, text in writing.items()}
    connector, notes = ends.build(sink, "sink", checked, problems, (*COMMON, *ours))
    if connector is None:
        return None
    placed = [rule.node for rule in job.transforms if rule.partition_keys]
    partitioner = {
        (Strategy.ALL_TO_ZERO, False): "AllToZero",
        (Strategy.ALL_TO_ZERO, True): "ByPlaceOrZero",
        (Strategy.HASH_BY_KEY, False): "",
        (Strategy.HASH_BY_KEY, True): "ByPlace",
    }[strategy, bool(placed)]
    options = {
        **kept,
        "connector": "kafka",
        "format": "table-changes",
        "key.format": "raw",
        "key.fields": "key",
        "value.fields-include": "EXCEPT_KEY",
    }
    if "sink.partitioner" in options:
        partitioner = ""
        for node in placed:
            hint = "Leave one of them out."
            trouble = "partition-keys: 'sink.partitioner' says where rows go"
            problems.add(trouble, node.members["partition-keys"], hint)
    elif partitioner:
        options["sink.partitioner"] = f"{_PARTITIONERS}.{partitioner}"
    return SinkPlan(
        sink,
        options,
        envelope,
        "csv" if key_format is KeyFormat.CSV else "table-json",
        writing,
        topic,
        partitioner,
        _is_exact(given),
        _parallelism(job, given),
        notes,
    )


def _kinesis(job: Job, name: str, section: Section, problems: Problems) -> SinkPlan | None:
    sink = job.sink
    envelope = _envelope(section)
    given = ends.secretive(sink, sink.options)
    kept, writing = _apart(given, (f"{envelope}.", f"value.{envelope}."))
    kept.pop("value.format", None)
    checked = {**kept, "format": envelope}
    if "stream.arn" in kept:
        checked["stream.arn"] = str(kept["stream.arn"]).replace(_PLACEHOLDER, "any")
    connector, notes = ends.build(sink, "sink", checked, problems, COMMON)
    if sink.headers or sink.table_headers:
        keys = ("sink.custom-header", "sink.add-tableId-to-header-enabled")
        node = next(sink.node.members[key] for key in keys if key in sink.node.members)
        trouble = f"sink: {node.key}: Kinesis records have no headers"
        problems.add(trouble, node, key=True)
    if connector is None:
        return None
    options = {**kept, "connector": "kinesis", "format": "table-changes"}
    parallelism = job.pipeline.parallelism
    return SinkPlan(
        sink, options, envelope, "table-json", writing, parallelism=parallelism, notes=notes
    )


def _envelope(section: Section) -> str:
    key = "value.format" if "value.format" in section else "format"
    return str(section.choice(key, ValueFormat, ValueFormat.DEBEZIUM).value)


def _exactly_once(job: Job, name: str) -> dict[str, str | Secret]:
    """The sink's options, with a name for its transactions where they are wanted."""
    given = ends.secretive(job.sink, job.sink.options)
    if _is_exact(given):
        given.setdefault("sink.transactional-id-prefix", f"streamcore-{name}")
    return given


def _is_exact(given: Mapping[str, str | Secret]) -> bool:
    return str(given.get("sink.delivery-guarantee", "")).lower() == "exactly-once"


def _parallelism(job: Job, given: Mapping[str, str | Secret]) -> int | None:
    text = str(given.get("sink.parallelism", ""))
    return int(text) if text.isdecimal() else job.pipeline.parallelism


def _apart(
    given: Mapping[str, str | Secret], starts: Sequence[str]
) -> tuple[dict[str, str | Secret], dict[str, str]]:
    """The options of the connector, and those of the format without their prefix."""
    kept: dict[str, str | Secret] = {}
    own: dict[str, str] = {}
    for key, value in given.items():
        start = next((each for each in starts if key.startswith(each)), None)
        if start is None:
            kept[key] = value
        else:
            own[key.removeprefix(start)] = str(value)
    return kept, own
