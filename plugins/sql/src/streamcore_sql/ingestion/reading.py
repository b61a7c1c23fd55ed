"""A job file to a job, or one error that tells of every mistake in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from streamcore import Table

from ..errors import SqlError
from ..parser import parse
from ..schema import table_of
from ..source import Place
from ..statements import ComputedColumn, CreateTable, MetadataColumn
from . import document
from .document import Node
from .errors import JobFileError, Problems, noted
from .model import (
    Behavior,
    ChangeType,
    Converter,
    DeclaredTable,
    Function,
    Job,
    Pipeline,
    RouteMode,
    RouteRule,
    RuntimeMode,
    Sink,
    Source,
    Transform,
)
from .routing import BadPattern, Route, Selector
from .sections import Section
from .variables import fill

SECTIONS = ("source", "sink", "route", "transform", "pipeline")
_WITHOUT_EFFECT = {
    "schema-operator.rpc-timeout": "schemas are kept where the job runs",
    "operator.uid.prefix": "Spark finds state by the query's own name",
    "sink.partitioning.strategy": "rows are partitioned as the sink says",
    "transform.decimal.precision.mode": "Spark decides the precision of decimals",
}
_OFFSET = re.compile(r"(GMT|UTC)?[+-](0\d|1[0-7]):[0-5]\d")
_SELECTS = "a pattern of tables such as 'shop.orders' or 'shop.\\.*'"


def read_job(
    text: str,
    name: str,
    variables: Mapping[str, str],
    secrets: Mapping[str, str],
    problems: Problems,
) -> Job | None:
    """Read a file as far as it can be read; nothing outside of it is looked at.

    What is wrong with it is added to `problems`; None if it lacks a source, a sink or the value
    of a variable.
    """
    root = document.read(text, name)
    is_filled = fill(root, variables, secrets, problems)
    job = _Reading(root, problems).job()
    return job if is_filled else None


class _Reading:
    """One walk over a file."""

    def __init__(self, root: Node, problems: Problems) -> None:
        self._problems = problems
        self._root = Section(root, "", self._problems)
        self._notes: list[str] = []

    def job(self) -> Job | None:
        source = self._source()
        sink = self._sink()
        routes = tuple(self._routes())
        transforms = tuple(self._transforms())
        pipeline = self._pipeline()
        for key, node in self._root.members.items():
            if key not in SECTIONS:
                self._problems.unknown(f"unknown section '{key}'", node, SECTIONS)
        if source is None or sink is None:
            return None
        return Job(source, sink, routes, transforms, pipeline, tuple(self._notes))

    # --- ends ------------------------------------------------------------------------------

    def _end(self, name: str) -> Section | None:
        node = self._root.node_of(name)
        if node is None:
            self._problems.add(f"section '{name}' is missing", self._root.node)
            return None
        if isinstance(node.value, list):
            trouble = f"{name}: a job has one {name}, found a list of {len(node.items)}"
            self._problems.add(trouble, node, f"Write a job file for each {name}.", key=True)
            return None
        return Section(node, name, self._problems)

    def _source(self) -> Source | None:
        section = self._end("source")
        if section is None:
            return None
        kind = section.text("type", required="the connector to read with")
        name = section.text("name")
        before = len(self._problems)
        tables = tuple(self._tables(section))
        unread = len(self._problems) > before
        options, nodes = section.options()
        return Source(kind, name, section.node, options, nodes, tables, unread)

    def _tables(self, section: Section) -> Iterator[DeclaredTable]:
        node = section.node_of("tables")
        if node is None:
            return
        items = node.items if isinstance(node.value, list) else [node]
        for number, item in enumerate(items, 1):
            if isinstance(item.value, str):
                if selector := self._selector("source: tables", item):
                    yield DeclaredTable(selector, None, item)
                continue
            entry = Section(item, f"source: tables[{number}]", self._problems)
            name = entry.text_node("name", required=_SELECTS)
            columns = entry.text_node("columns")
            key = entry.names("primary-keys")
            entry.end()
            selector = self._selector(f"{entry.label}: name", name) if name else None
            table = self._declared(entry, columns, key) if columns else None
            if key and not columns:
                trouble = f"{entry.label}: 'primary-keys' needs 'columns'"
                hint = "For tables whose columns are inferred, set it in a transform."
                self._problems.add(trouble, item.members["primary-keys"], hint, key=True)
            if selector:
                yield DeclaredTable(selector, table, item)

    def _declared(self, entry: Section, node: Node, key: tuple[str, ...]) -> Table | None:
        """The columns of a table, written as between the parentheses of CREATE TABLE."""
        head = "CREATE TABLE t ("
        text = f"{head}{node.text}"
        if key:
            text += f", PRIMARY KEY ({', '.join(f'`{name}`' for name in key)}) NOT ENFORCED"
        try:
            (statement,) = parse(f"{text}\n)")
        except SqlError as error:
            for problem in () if node.unfilled else error.problems:
                place = _within(node, problem, len(head))
                trouble = f"{entry.label}: columns: {problem.trouble}"
                self._problems.take(JobFileError(trouble, place, problem.hint))
            return None
        except ValueError:
            self._problems.add(f"{entry.label}: columns: expected columns and nothing else", node)
            return None
        assert isinstance(statement, CreateTable)
        odd = [
            column.name
            for column in statement.columns
            if isinstance(column, (ComputedColumn, MetadataColumn))
        ]
        if odd or statement.watermark or statement.options:
            what = f"'{odd[0]}' is no column of the rows" if odd else "expected columns only"
            self._problems.add(
                f"{entry.label}: columns: {what}", node, "Compute it in a transform."
            )
            return None
        return table_of(statement)

    def _sink(self) -> Sink | None:
        section = self._end("sink")
        if section is None:
            return None
        kind = section.text("type", required="the connector to write with")
        name = section.text("name")
        table_headers = section.value("sink.add-tableId-to-header-enabled", bool, False)
        headers = self._pairs(section, "sink.custom-header", ",")
        topics = self._pairs(section, "sink.tableId-to-topic.mapping", ";")
        refused = frozenset(self._refused(section))
        options, nodes = section.options()
        return Sink(
            kind, name, section.node, options, nodes, table_headers, headers, topics, refused
        )

    def _pairs(self, section: Section, key: str, separator: str) -> dict[str, str]:
        """`a:1,b:2` as a mapping; a value may have colons of its own."""
        text, found = section.text(key), {}
        for part in text.split(separator):
            name, colon, value = (each.strip() for each in part.partition(":"))
            if name and colon:
                found[name] = value
            elif part.strip():
                node = section.members[key]
                looks = f"name:value{separator}name:value"
                self._problems.add(
                    f"sink: {key}: '{part.strip()}' does not look like {looks}", node
                )
        return found

    def _refused(self, section: Section) -> Iterator[ChangeType]:
        """The changes of a schema that are not wanted; excluding one wins over including it."""
        included, excluded = (
            {change for name in section.names(key) for change in self._types(section, key, name)}
            for key in ("include.schema.changes", "exclude.schema.changes")
        )
        for each in ChangeType:
            if each in excluded or ("include.schema.changes" in section and each not in included):
                yield each

    def _types(self, section: Section, key: str, name: str) -> list[ChangeType]:
        """The changes a name means: `add`, `column` or `alter.column` mean all that have it."""
        found = [each for each in ChangeType if f".{name}." in f".{each.value}."]
        if not found:
            known = ", ".join(each.value for each in ChangeType)
            trouble = f"sink: {key}: '{name}' is no change of a schema; there are {known}"
            self._problems.add(trouble, section.members[key])
        return found

    # --- rules -----------------------------------------------------------------------------

    def _selector(self, label: str, node: Node) -> Selector | None:
        selector = Selector(node.text)
        try:
            if selector.patterns:
                return selector
            self._problems.add(f"{label}: expected {_SELECTS}, found nothing", node)
        except BadPattern as error:
            hint = r"A dot separates the parts of a name; the dot of a pattern is written '\.'."
            self._problems.add(f"{label}: {error}", node, hint)
        return None

    def _selected(self, section: Section) -> Selector | None:
        node = section.text_node("source-table", required=_SELECTS)
        return self._selector(f"{section.label}: source-table", node) if node else None

    def _routes(self) -> Iterator[RouteRule]:
        for section in self._root.sections("route"):
            source = self._selected(section)
            target = section.text("sink-table", required="the name at the sink")
            symbol = section.text("replace-symbol")
            section.text("description")
            section.end(("source-table", "sink-table", "replace-symbol", "description"))
            if source is None or not target:
                continue
            route = Route(source, target, symbol)
            node = section.members["sink-table"]
            if too_far := [n for n in route.references if not 1 <= n <= source.groups]:
                trouble = f"{section.label}: sink-table: '${too_far[0]}' captures nothing"
                count = source.groups
                hint = f"'source-table' has {count} group{'s' * (count != 1)} in parentheses."
                self._problems.add(trouble, node, hint)
                continue
            if symbol and (captured := re.search(r"\$\d+", target)):
                trouble = f"{section.label}: sink-table: '{captured[0]}' beside 'replace-symbol'"
                self._problems.add(trouble, node, "Use groups or a symbol, not both.")
                continue
            if symbol and symbol not in target and not node.unfilled:
                trouble = f"{section.label}: replace-symbol: '{symbol}' is not in 'sink-table'"
                self._problems.add(trouble, section.members["replace-symbol"])
                continue
            yield RouteRule(route, section.node)

    def _transforms(self) -> Iterator[Transform]:
        for section in self._root.sections("transform"):
            source = self._selected(section)
            converter = section.value("converter-after-transform", Converter, None)
            if section.text("table-options") or section.text("table-options.delimiter"):
                text = f"{section.label}: table-options: no effect: topics are not created here"
                self._notes.append(noted(text, section.node))
            section.text("description")
            found = (
                section.node,
                section.text_node("projection"),
                section.text_node("filter"),
                section.names("primary-keys"),
                section.names("partition-keys"),
                converter is Converter.SOFT_DELETE,
            )
            section.end()
            if source is not None:
                yield Transform(source, *found)

    # --- pipeline ----------------------------------------------------------------------------

    def _pipeline(self) -> Pipeline:
        node = self._root.node_of("pipeline")
        if node is None:
            return Pipeline()
        section = Section(node, "pipeline", self._problems)
        for key, reason in _WITHOUT_EFFECT.items():
            if (given := section.text_node(key)) is not None:
                self._notes.append(noted(f"pipeline: {key}: no effect: {reason}", given, key=True))
        parallelism = section.value("parallelism", int, None)
        if parallelism is not None and parallelism < 1:
            trouble = f"pipeline: parallelism: {parallelism} is not a whole number above 0"
            self._problems.add(trouble, section.members["parallelism"])
        zone = section.text("local-time-zone")
        section.check("local-time-zone", _zone_complaint)
        if (model := section.node_of("model")) is not None:
            hint = "Call the model from a Python function."
            self._problems.add("pipeline: model: models are not supported", model, hint, key=True)
        pipeline = Pipeline(
            section.text("name"),
            parallelism,
            "" if zone.lower() == "system" else zone,
            section.choice("schema.change.behavior", Behavior, Behavior.LENIENT),
            section.choice("route-mode", RouteMode, RouteMode.ALL_MATCH),
            section.choice("execution.runtime-mode", RuntimeMode, RuntimeMode.STREAMING),
            tuple(self._functions(section)),
        )
        section.end()
        return pipeline

    def _functions(self, section: Section) -> Iterator[Function]:
        for entry in section.sections("user-defined-function"):
            name = entry.text("name", required="how expressions call it")
            target = entry.text_node("classpath", required="the function, as 'module.function'")
            for key in ("python-code", "python-executable", "python-files"):
                if (node := entry.node_of(key)) is not None:
                    trouble = f"{entry.label}: {key}: a job file holds no code"
                    hint = "Put the function into an importable module and name it in 'classpath'."
                    self._problems.add(trouble, node, hint, key=True)
            if (node := entry.node_of("options")) is not None:
                trouble = f"{entry.label}: options: a Python function is given none"
                hint = "Pass them as arguments where expressions call it."
                self._problems.add(trouble, node, hint, key=True)
            entry.end()
            if name and target:
                yield Function(name, target.text, target)


def _zone_complaint(zone: str) -> str | None:
    from zoneinfo import ZoneInfo

    if zone.lower() == "system" or _OFFSET.fullmatch(zone):
        return None
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        return f"'{zone}' is not a time zone such as 'UTC' or 'Europe/Berlin'"
    return None


def _within(node: Node, problem: SqlError, before: int) -> Place:
    """Where a mistake inside a text stands in the file, as far as that can be known."""
    start = problem.place.start - before
    if not node.exact or not 0 <= start <= len(node.text):
        return node.place
    end = min(max(problem.place.end - before, start + 1), len(node.text))
    return node.place.within(start, end)
