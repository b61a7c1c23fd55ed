"""ROW_NUMBER() = 1, SELECT DISTINCT and UNION: rows kept once."""

from __future__ import annotations

from sqlglot import exp

from ..errors import SqlError
from ..source import Place
from .context import Context, named, output_name, raw, select_from, selects, sources, spark_sql
from .result import DropDuplicates
from .spark_text import spark_name

_ONE = "CAST(1 AS BIGINT)"
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"})
_TIMES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ"})


def keep_one_per_key(tree: exp.Expr, context: Context) -> None:
    """Turn `WHERE rn = 1` over a ROW_NUMBER into what a stream can do, and refuse other OVERs."""
    for select in selects(tree):
        found = sources(select)
        if len(found) == 1 and isinstance(found[0], exp.Subquery):
            _deduplicate(select, found[0], context)
    for window in tree.find_all(exp.Window):
        call = context.call_of(window.this)
        name = call.name if call else "OVER"
        if name in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
            trouble = f"{name} on a stream keeps one row per key, not more"
            hint = "Filter it with '= 1', or read a bounded table."
        else:
            trouble = f"{name} OVER (...) is not supported on a stream"
            hint = "Group by a window instead: TUMBLE, HOP, SESSION or CUMULATE."
        raise SqlError(trouble, context.place(window.this), hint)


def _deduplicate(select: exp.Select, source: exp.Subquery, context: Context) -> None:
    inner = source.this
    where = select.args.get("where")
    if not isinstance(inner, exp.Select) or where is None:
        return
    for projection in inner.expressions:
        window = projection.this if isinstance(projection, exp.Alias) else None
        if isinstance(window, exp.Window) and context.is_call(window.this, "ROW_NUMBER"):
            condition = _first_only(where.this, projection.alias)
            if condition is None:
                return
            _keep(inner, projection, window, source, context)
            rest = [p for p in _conjuncts(where.this) if p is not condition]
            select.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
            return


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.flatten()) if isinstance(node, exp.And) else [node]


def _first_only(where: exp.Expr, alias: str) -> exp.Expr | None:
    """The condition that says `alias = 1`, in any of its spellings."""
    for part in _conjuncts(where):
        if not isinstance(part, exp.EQ | exp.LTE | exp.LT):
            continue
        limit = "2" if isinstance(part, exp.LT) else "1"
        sides = (part.this, part.expression)
        if isinstance(part, exp.EQ) and isinstance(sides[0], exp.Literal):
            sides = sides[::-1]
        if sides[0].name == alias and isinstance(sides[1], exp.Literal) and sides[1].name == limit:
            return part
    return None


def _keep(
    inner: exp.Select,
    projection: exp.Alias,
    window: exp.Window,
    source: exp.Subquery,
    context: Context,
) -> None:
    place = context.place(window.this)
    order = window.args.get("order")
    ordered = list(order.expressions) if order else []
    keys = list(window.args.get("partition_by") or [])
    if not ordered:
        hint = "Write ROW_NUMBER() OVER (PARTITION BY key ORDER BY ts)."
        raise SqlError("ROW_NUMBER needs an order", place, hint)
    if not all(isinstance(key, exp.Column) for key in keys):
        hint = "Compute the key in a subquery and PARTITION BY its name."
        raise SqlError("ROW_NUMBER: PARTITION BY takes columns", place, hint)
    last = bool(ordered[0].args.get("desc"))
    windowed = {"window_start", "window_end"} <= {key.name for key in keys}
    if last or windowed or not _may_be_time(ordered[0].this, context):
        projection.pop()
        order = [(each.this, _value(each, last, place, context)) for each in ordered]
        _aggregate(inner, source, keys, order, last, projection)
        context.keeps_last = context.keeps_last or not windowed
        return
    names = _output_names(inner)
    missing = [key.name for key in keys if names is not None and key.name not in names]
    if missing:
        hint = f"Select {', '.join(missing)} beside ROW_NUMBER() as well."
        raise SqlError("ROW_NUMBER: the keys are not selected", place, hint)
    projection.set("this", raw(_ONE))
    key_names = tuple(key.name for key in keys)
    context.staged.append((inner, DropDuplicates(key_names, spark_sql(ordered[0].this))))
    if not context.is_processing_time(ordered[0].this, inner):
        text = "the first row of a key is the one that comes first, not the one with the least time"
        context.note(text, place)


def _may_be_time(node: exp.Expr, context: Context) -> bool:
    """Whether rows may come in this order; they do not in that of a column known to be no time."""
    kinds = {
        kind.name for kind in context.types_of(node.name if isinstance(node, exp.Column) else "")
    }
    return not kinds or not kinds.isdisjoint(_TIMES)


def _value(ordered: exp.Expr, last: bool, place: Place, context: Context) -> str:
    """What to compare, `{}` being the value: one of the other direction is turned around."""
    if bool(ordered.args.get("desc")) == last:
        return "{}"
    kinds = {kind.name for kind in context.types_of(ordered.this.name)}
    if kinds and kinds <= _NUMBERS:
        return "-{}"
    if kinds and kinds <= _TIMES:
        return "-unix_micros(CAST({} AS TIMESTAMP))"
    trouble = f"ROW_NUMBER in two directions is not supported for '{spark_sql(ordered.this)}'"
    raise SqlError(trouble, place, "Order by columns that are numbers or times, or all one way.")


def _output_names(select: exp.Select) -> set[str] | None:
    """The names a SELECT gives its columns; None when a star hides them."""
    if any(p.is_star for p in select.expressions):
        return None
    return {output_name(projection) for projection in select.expressions}


def _aggregate(
    inner: exp.Select,
    source: exp.Subquery,
    keys: list[exp.Expr],
    order: list[tuple[exp.Expr, str]],
    last: bool,
    number: exp.Alias,
) -> None:
    """`SELECT __kept.*, 1 AS rn FROM (SELECT max_by(struct(*), ts) AS __kept ... GROUP BY key)`."""
    hidden: list[str] = []
    by = [_named_outside(key, inner, f"__key{at}", hidden) for at, key in enumerate(keys, 1)]
    texts = [
        value.format(_named_outside(each, inner, f"__order{at}", hidden))
        for at, (each, value) in enumerate(order, 1)
    ]
    best = texts[0] if len(texts) == 1 else f"struct({', '.join(texts)})"
    row = f"* EXCEPT ({', '.join(hidden)})" if hidden else "*"
    value = f"{'max' if last else 'min'}_by(struct({row}), {best})"
    grouped = select_from(inner, named(value, "__kept"), alias="__rows")
    if keys:
        grouped.set("group", exp.Group(expressions=[exp.column(name) for name in by]))
    kept = exp.Column(this=exp.Star(), table=exp.to_identifier("__kept"))
    outer = select_from(grouped, kept, named(_ONE, number.alias))
    grouped.meta["kept"] = outer.meta["kept"] = True  # the window is among the fields
    source.set("this", outer)


def _named_outside(value: exp.Expr, inner: exp.Select, name: str, hidden: list[str]) -> str:
    """What a value of a SELECT's sources is called outside of it: a hidden column if nothing."""
    if isinstance(value, exp.Column) and _is_selected(value, inner):
        return spark_name(value.name)
    if value.name in ("window_start", "window_end"):
        name = value.name  # known by its name when windows are grouped by
    inner.append("expressions", exp.alias_(value.copy(), name))
    hidden.append(name)
    return name


def _is_selected(column: exp.Column, select: exp.Select) -> bool:
    """Whether a SELECT hands a column of its sources on under its own name, and no other one."""
    found = [p for p in select.expressions if p.is_star or output_name(p) == column.name]
    if len(found) != 1:
        return False
    (projection,) = found
    if isinstance(projection, exp.Star) or not column.table:
        return len(sources(select)) == 1 and (projection.is_star or projection == column)
    covers = projection.is_star and projection.text("table") == column.table
    return bool(projection == column or covers)


def drop_duplicates(tree: exp.Expr, context: Context) -> None:
    """Turn SELECT DISTINCT and UNION into a step that forgets what it has seen."""
    for node in list(tree.find_all(exp.Select, exp.Union)):
        if isinstance(node, exp.Select) and node.args.get("distinct") is not None:
            node.set("distinct", None)
            context.staged.append((node, DropDuplicates()))
        elif isinstance(node, exp.Union) and node.args.get("distinct"):
            node.set("distinct", False)
            if not (isinstance(node.parent, exp.Union) and _was_distinct(node.parent, context)):
                context.staged.append((node, DropDuplicates()))


def _was_distinct(union: exp.Union, context: Context) -> bool:
    return any(node is union for node, _ in context.staged)
