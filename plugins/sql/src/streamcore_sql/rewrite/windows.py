"""Grouping and joining by windows: by the window as a whole, so that Spark knows its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from ..errors import SqlError
from .context import (
    Context,
    alias_of,
    is_hidden_from_above,
    named,
    output_name,
    raw,
    sources,
    spark_sql,
)
from .durations import milliseconds
from .functions import is_aggregate
from .placeholders import Call
from .result import Aggregation, Window
from .spark_text import spark_name

_BOUNDS = ("window_start", "window_end")


@dataclass
class Windows:
    """The windows of one query: which column holds each, and which SELECT lets it be seen."""

    context: Context
    by_column: dict[str, Window] = field(default_factory=dict)
    exposed: dict[int, str | None] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)

    def add(self, window: Window) -> str:
        """Note a window and name the column that holds it."""
        self.context.windows.append(window)
        column = f"__w{len(self.by_column) + 1}"
        self.by_column[column] = window
        return column

    def group(self, tree: exp.Expr) -> None:
        """Group by the window itself where window_start and window_end are grouped by."""
        for select in list(tree.find_all(exp.Select)):
            self._visit(select, tree)
        for column, window in self.by_column.items():
            if window.kind == "SESSION" and column not in self.grouped:
                hint = "Sessions exist per group: GROUP BY window_start, window_end and the keys."
                raise SqlError("a SESSION window needs a GROUP BY", window.place, hint)

    def _visit(self, select: exp.Select, tree: exp.Expr) -> str | None:
        """Rewrite one SELECT after those it reads from; return the window column it exposes."""
        if id(select) in self.exposed:
            return self.exposed[id(select)]
        self.exposed[id(select)] = None  # a query that reads itself ends here
        found = {alias_of(s): w for s in sources(select) if (w := self._of_source(s, tree))}
        self._join_on_windows(select, found)
        group = select.args.get("group")
        if group is not None or any(is_aggregate(n, self.context) for n in _own(select)):
            grouped = self._aggregate(select, group, found)
            carries = select.meta.get("kept") or (grouped and self._carries(select, grouped))
            result = grouped if carries else None
        else:
            result = self._pass_on(select, found)
        self.exposed[id(select)] = result
        return result

    def _of_source(self, source: exp.Expr, tree: exp.Expr) -> str | None:
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
            return self._visit(source.this, tree)
        if isinstance(source, exp.Table) and not source.meta.get("view"):
            for cte in tree.root().find_all(exp.CTE):
                if cte.alias == source.name and isinstance(cte.this, exp.Select):
                    return self._visit(cte.this, tree)
        return None

    def _aggregate(
        self, select: exp.Select, group: exp.Group | None, found: dict[str, str]
    ) -> str | None:
        keys = list(group.expressions) if group else []
        for key in keys:
            call = self.context.call_of(key)
            if call and call.name in ("TUMBLE", "HOP", "SESSION"):
                window = self._group_window(key, call)
                self.context.windows.append(window)
                self._note_aggregation(select, keys, window)
                return None
        bounds = {key.name: key for key in keys if isinstance(key, exp.Column)}
        if not found or not all(bound in bounds for bound in _BOUNDS):
            self._note_aggregation(select, keys, None)
            return None
        column = found.get(bounds["window_start"].table) or next(iter(found.values()))
        window = self.by_column[column]
        self._note_aggregation(select, keys, window)
        self.grouped.add(column)
        self._check_session_keys(window, keys)
        if window.kind == "CUMULATE":
            return None
        others = [k for k in keys if k.name not in (*_BOUNDS, "window_time")]
        qualifier = bounds["window_start"].args.get("table")
        group_by = exp.column(column, table=qualifier.copy() if qualifier else None)
        assert group is not None
        group.set("expressions", [group_by, *others])
        self._name_bounds(select, column)
        return column

    def _group_window(self, node: exp.Expr, call: Call) -> Window:
        """The window of `GROUP BY TUMBLE(ts, INTERVAL ..)`, the older form."""
        if len(node.expressions) != (3 if call.name == "HOP" else 2):
            raise SqlError(f"{call.name} takes a time column and lengths", call.place)
        time, *rest = node.expressions
        lengths = [milliseconds(each, "window length", call.place) for each in rest]
        return Window(
            call.name,  # type: ignore[arg-type] # the caller looked
            spark_sql(time),
            lengths[-1],
            lengths[0] if call.name == "HOP" else None,
            processing_time=self.context.is_processing_time(time, node),
            place=call.place,
        )

    def _note_aggregation(
        self, select: exp.Select, keys: list[exp.Expr], window: Window | None
    ) -> None:
        bounds = (*_BOUNDS, "window_time", "TUMBLE", "HOP", "SESSION")
        others = [key for key in keys if self._key_name(None, key) not in bounds]
        names = tuple(self._key_name(select, key) for key in others)
        place = self.context.place(select)
        self.context.aggregations.append(Aggregation(window, names, place=place))

    def _key_name(self, select: exp.Select | None, key: exp.Expr) -> str:
        """What a key is called in the result; else its column or function."""
        for projection in select.expressions if select else ():
            if projection.unalias() == key and output_name(projection):
                return output_name(projection)
        call = self.context.call_of(key)
        return call.name if call else key.name

    def _check_session_keys(self, window: Window, keys: list[exp.Expr]) -> None:
        missing = [k for k in window.partition_by if k not in {key.name for key in keys}]
        if window.kind == "SESSION" and missing:
            hint = f"Add {', '.join(missing)} to GROUP BY."
            raise SqlError("a SESSION window is grouped by all its keys", window.place, hint)

    def _name_bounds(self, select: exp.Select, column: str) -> None:
        """`window_start` of a grouped SELECT is a field of the window."""
        wraps = False
        for node in _own(select):
            if (
                not isinstance(node, exp.Column)
                or node.find_ancestor(exp.Group, exp.Select) is not select
            ):
                continue
            qualifier = f"{spark_name(node.table)}." if node.table else ""
            direct = node.parent is select
            if node.name in _BOUNDS:
                text = f"{qualifier}{column}.{node.name.removeprefix('window_')}"
                node.replace(named(text, node.name) if direct else raw(text))
            elif node.name == "window_time":
                if direct or (isinstance(node.parent, exp.Alias) and node.parent.parent is select):
                    wraps = True
                else:
                    node.replace(raw(f"({qualifier}{column}.end - INTERVAL '0.001' SECOND)"))
        if wraps:
            _wrap_window_time(select, column)

    def _carries(self, select: exp.Select, column: str) -> bool:
        """Let a grouped SELECT hand its window on, if that is safe and somebody may use it."""
        names = {output_name(projection) for projection in select.expressions}
        if is_hidden_from_above(select) or not all(bound in names for bound in _BOUNDS):
            return False
        if column not in names:
            select.append("expressions", exp.column(column))
        return True

    def _pass_on(self, select: exp.Select, found: dict[str, str]) -> str | None:
        if not found:
            return None
        if select.meta.get("kept"):
            return next(iter(found.values()))
        stars = [p for p in select.expressions if _star(p)]
        if is_hidden_from_above(select) or len(found) > 1:
            for star in stars:
                columns = [exp.column(c) for a, c in found.items() if _covers(star, a)]
                target = _star(star)
                assert target is not None
                if columns:
                    target.set("except_", [*(target.args.get("except_") or []), *columns])
            return None
        column = next(iter(found.values()))
        if stars:
            return column
        return column if self._carries(select, column) else None

    def _join_on_windows(self, select: exp.Select, found: dict[str, str]) -> None:
        """Join windows as wholes, so that Spark knows when their rows can be forgotten."""
        for join in select.args.get("joins") or []:
            on = join.args.get("on")
            if on is None:
                continue
            parts = list(on.flatten()) if isinstance(on, exp.And) else [on]
            pairs = {_bound_pair(part): part for part in parts}
            ends = {frozenset(pair[1:]): pair for pair in pairs if pair and pair[0] == _BOUNDS[1]}
            for pair in [p for p in pairs if p and p[0] == _BOUNDS[0]]:
                other = ends.get(frozenset(pair[1:]))
                if other and all(side in found for side in pair[1:]):
                    left, right = (exp.column(found[side], table=side) for side in pair[1:])
                    parts = [p for p in parts if p is not pairs[pair] and p is not pairs[other]]
                    parts.append(exp.EQ(this=left, expression=right))
            join.set("on", exp.and_(*parts, copy=False))


def _own(select: exp.Select) -> list[exp.Expr]:
    """The nodes of a SELECT's own projections and HAVING, not those of queries inside it."""
    roots = [*select.expressions, *filter(None, [select.args.get("having")])]
    return [
        node
        for root in roots
        for node in root.walk(prune=lambda n: isinstance(n, exp.Subquery | exp.Select))
    ]


def _star(projection: exp.Expr) -> exp.Star | None:
    inner = projection.this if isinstance(projection, exp.Column) else projection
    return inner if isinstance(inner, exp.Star) else None


def _covers(star: exp.Expr, alias: str) -> bool:
    return isinstance(star, exp.Star) or star.args["table"].name == alias


def _bound_pair(node: exp.Expr) -> tuple[str, str, str] | None:
    """`l.window_start = r.window_start` as (window_start, l, r)."""
    if not isinstance(node, exp.EQ):
        return None
    left, right = node.this, node.expression
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    if left.name != right.name or left.name not in _BOUNDS or not (left.table and right.table):
        return None
    return left.name, left.table, right.table


def _wrap_window_time(select: exp.Select, column: str) -> None:
    """`window_time` is known only behind the aggregation, so select it from the outside."""
    outer: list[exp.Expr] = []
    inner: list[exp.Expr] = []
    for index, projection in enumerate(select.expressions):
        name = output_name(projection) or f"EXPR${index}"
        body = projection.this if isinstance(projection, exp.Alias) else projection
        if isinstance(body, exp.Column) and body.name == "window_time":
            outer.append(named(f"window_time({column})", name))
        else:
            outer.append(exp.column(exp.to_identifier(name)))
            inner.append(projection if output_name(projection) else exp.alias_(projection, name))
    clauses = dict(select.args)
    ctes = clauses.pop("with_", None)
    clauses["expressions"] = [*inner, exp.column(column)]
    within = exp.Select(**clauses)
    select.args.clear()
    select.set("expressions", outer)
    select.set("from_", exp.From(this=exp.Subquery(this=within)))
    select.set("with_", ctes)
