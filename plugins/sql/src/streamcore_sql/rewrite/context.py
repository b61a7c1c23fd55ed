"""One rewriting: what was asked, what the placeholders mean, and what was found on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ..cursor import SqlText
from ..errors import SqlError
from ..source import NOWHERE, Place
from ..statements import ComputedColumn, CreateTable, CreateView
from ..typename import TypeName
from .placeholders import Aside, Call, Prepared, Reference
from .prepass import prepare
from .result import Aggregation, DropDuplicates, Join, Note, TableRef, TemporalJoin, Window

Lookup = Callable[[tuple[str, ...]], CreateTable | CreateView | None]
_CALL = re.compile(r"__f(\d+)")
_REFERENCE = re.compile(r"__t(\d+)")


@dataclass
class Context:
    """The state of one rewriting."""

    lookup: Lookup
    streaming: bool = True
    approximate_distinct: bool = False
    prefix: str = ""
    aside: Aside = field(default_factory=Aside)
    prepared: list[Prepared] = field(default_factory=list)
    tables: dict[str, TableRef] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    aggregations: list[Aggregation] = field(default_factory=list)
    joins: list[Join] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    staged: list[tuple[exp.Expr, DropDuplicates | TemporalJoin]] = field(default_factory=list)
    keeps_last: bool = False
    words: dict[str, set[str]] = field(default_factory=dict)
    """What the query may call the columns of each table, by their views, in lower case."""

    def parse(self, query: SqlText) -> exp.Expr:
        """Read a query or expression with the stock Spark parser."""
        prepared = prepare(query, self.aside)
        self.prepared.append(prepared)
        try:
            tree = sqlglot.parse_one(prepared.text, read="spark")
        except SqlglotError as error:
            raise self._syntax_error(error, prepared) from None
        for node in tree.walk():
            if "start" in node.meta:
                node.meta["text"] = len(self.prepared) - 1
        return tree

    def _syntax_error(self, error: SqlglotError, prepared: Prepared) -> SqlError:
        for detail in getattr(error, "errors", ()):
            line, column = detail.get("line"), detail.get("col")
            if line and column and prepared.text:
                lines = prepared.text.splitlines(keepends=True)
                offset = sum(map(len, lines[: line - 1])) + column - 1
                place = prepared.place(offset, offset)
                return SqlError(f"'{_shown(place)}' does not fit here", place)
        return SqlError("this query cannot be read", prepared.place(0, 0))

    # --- placeholders --------------------------------------------------------------

    def call_of(self, node: object) -> Call | None:
        """The function a node calls, if it calls one."""
        if isinstance(node, exp.Anonymous):
            match = _CALL.fullmatch(str(node.this))
            return self.aside.calls[int(match[1])] if match else None
        return None

    def is_call(self, node: object, *names: str) -> bool:
        call = self.call_of(node)
        return call is not None and call.name in names

    def calls(self, tree: exp.Expr) -> Iterator[tuple[exp.Anonymous, Call]]:
        for node in tree.find_all(exp.Anonymous):
            if call := self.call_of(node):
                yield node, call

    def reference_of(self, node: exp.Expr) -> Reference | None:
        """The table a `__t<n>` stands for."""
        match = _REFERENCE.fullmatch(node.name)
        return self.aside.references[int(match[1])] if match else None

    def place(self, node: exp.Expr | None) -> Place:
        """Where a node was written: its own first name, else its parent's."""
        if node is None:
            return NOWHERE
        if call := self.call_of(node):
            return call.place
        for each in node.walk():
            if "text" in each.meta:
                text, start, end = (int(each.meta[key]) for key in ("text", "start", "end"))
                return self.prepared[text].place(start, end)
        return self.place(node.parent)

    # --- what the catalog knows ---------------------------------------------------------

    def types_of(self, column: str) -> Iterator[TypeName]:
        """The types of every known column of that name among the tables read."""
        for table in self.known_tables():
            for each in table.columns:
                if each.name == column and not isinstance(each, ComputedColumn):
                    yield each.type

    def known_tables(self) -> Iterator[CreateTable]:
        for ref in self.tables.values():
            found = self.lookup(ref.name)
            if isinstance(found, CreateTable):
                yield found

    def is_processing_time(self, node: exp.Expr, tree: exp.Expr) -> bool:
        """Whether an expression is PROCTIME(), or a column that is nothing else."""
        if self.is_call(node, "PROCTIME"):
            return True
        if not isinstance(node, exp.Column):
            return False
        for alias in tree.root().find_all(exp.Alias):
            if alias.alias == node.name and self.is_call(alias.this, "PROCTIME"):
                return True
        return any(
            isinstance(column, ComputedColumn)
            and column.name == node.name
            and re.fullmatch(r"PROCTIME\s*\(\s*\)", column.expression.text.strip(), re.IGNORECASE)
            for table in self.known_tables()
            for column in table.columns
        )

    def note(self, text: str, place: Place) -> None:
        """Remember a difference from Flink, once per text."""
        if all(note.text != text for note in self.notes):
            self.notes.append(Note(text, place))


def _shown(place: Place) -> str:
    return place.source.quote(place.start, place.end)


def spark_sql(node: exp.Expr) -> str:
    """A node as Spark SQL, with names and calls as they are."""
    return node.sql(dialect="spark", normalize_functions=False, comments=False)


def raw(text: str) -> exp.Var:
    """Text that is printed as it is."""
    return exp.Var(this=text)


def select_from(source: exp.Expr, *projections: exp.Expr, alias: str = "") -> exp.Select:
    """`SELECT projections FROM source`, without the copies that sqlglot's builders make."""
    if isinstance(source, exp.Query) and not isinstance(source, exp.Subquery):
        name = exp.TableAlias(this=exp.to_identifier(alias)) if alias else None
        source = exp.Subquery(this=source, alias=name)
    return exp.Select(expressions=list(projections), from_=exp.From(this=source))


def named(text: str, name: str) -> exp.Alias:
    """`text AS name`, with the text printed as it is."""
    return exp.Alias(this=raw(text), alias=exp.to_identifier(name))


def output_name(projection: exp.Expr) -> str:
    """What a projection is called in the result; nothing if nobody named it."""
    return str(projection.alias or (projection.name if isinstance(projection, exp.Column) else ""))


def selects(tree: exp.Expr) -> list[exp.Select]:
    """Every SELECT, inner ones first."""
    return list(reversed(list(tree.find_all(exp.Select, bfs=True))))


def sources(select: exp.Select) -> list[exp.Expr]:
    """What stands in FROM and behind each JOIN."""
    first = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or []]
    return [*([first.this] if first else []), *joined]


def alias_of(source: exp.Expr) -> str:
    """The name columns of a source are qualified with."""
    return str(source.alias_or_name)


def is_hidden_from_above(select: exp.Select) -> bool:
    """Whether its columns are the result's, or are told apart by position: no extra ones then."""
    parent = select.parent
    if isinstance(parent, exp.Subquery):
        if parent.args.get("alias") and parent.args["alias"].args.get("columns"):
            return True
        return not isinstance(parent.parent, (exp.From, exp.Join))
    if isinstance(parent, exp.CTE):
        return bool(parent.args["alias"].args.get("columns"))
    return True
