"""Joins: UNNEST, table functions, and `FOR SYSTEM_TIME AS OF`."""

from __future__ import annotations

from sqlglot import exp

from ..errors import SqlError
from ..source import Place
from .context import Context, alias_of, raw, select_from, spark_sql
from .result import Join, TemporalJoin
from .tables import mark_lookup


def rewrite_joins(tree: exp.Expr, context: Context) -> None:
    """Rewrite the joins of every SELECT and note what kinds there are."""
    for lateral in tree.find_all(exp.Lateral):
        inner = lateral.this
        if isinstance(inner, exp.Anonymous) and str(inner.this).upper() == "TABLE":
            lateral.set("this", inner.expressions[0])
    for select in list(tree.find_all(exp.Select)):
        _unnest(select, context)
        for join in list(select.args.get("joins") or []):
            _join(select, join, context)


def _join(select: exp.Select, join: exp.Join, context: Context) -> None:
    place = context.place(join.this)
    kind = (join.side or join.kind or ("INNER" if join.args.get("on") else "CROSS")).upper()
    if join.args.get("using") and not (join.side or join.kind):
        kind = "INNER"
    version = join.this.args.get("version")
    if version is None:
        endless = _is_endless(join) and not (
            kind in ("INNER", "CROSS") and _bounds_time(select.args.get("where"))
        )
        context.joins.append(Join(kind, endless=endless, place=place))
        return
    join.this.set("version", None)
    time = version.expression
    if context.is_processing_time(time, select):
        mark_lookup(join.this, context)
        context.joins.append(Join(kind, "processing-time", place=place))
    else:
        context.joins.append(Join(kind, "event-time", place=place))
        _temporal(select, join, time, kind, context)


_RANGES = (exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE)


def _bounds_time(where: exp.Where | None) -> bool:
    """Whether a WHERE compares two tables by more or less, which an inner join then does, too."""
    ranges = where.find_all(*_RANGES) if where is not None else ()
    return any(len({c.table for c in each.find_all(exp.Column) if c.table}) > 1 for each in ranges)


def _is_endless(join: exp.Join) -> bool:
    """Whether no bound on time, and no window, says when the rows of a table are of no more use."""
    on = join.args.get("on")
    bounded = on is not None and (
        on.find(*_RANGES) or any(c.name == "window_start" for c in on.find_all(exp.Column))
    )
    return join.this.find(exp.Table) is not None and not bounded


def _temporal(
    select: exp.Select, join: exp.Join, time: exp.Expr, kind: str, context: Context
) -> None:
    place = context.place(join.this)
    origin = select.args.get("from_")
    view = join.this.meta.get("view")
    is_first = origin is not None and select.args["joins"][0] is join
    if kind not in ("INNER", "LEFT") or view is None or not is_first:
        hint = "Put it first: FROM rows JOIN versions FOR SYSTEM_TIME AS OF rows.ts AS v ON ..."
        raise SqlError("a temporal join joins a stream with a table, INNER or LEFT", place, hint)
    assert origin is not None
    left = origin.this
    names = alias_of(left), alias_of(join.this)
    if not isinstance(time, exp.Column):
        hint = "Name the row's own time: FOR SYSTEM_TIME AS OF o.ts."
        raise SqlError("a temporal join needs a time column", place, hint)
    shared = [identifier.name for identifier in join.args.get("using") or ()]
    for column in list(select.find_all(exp.Column)):
        if not column.table and not column.is_star and column.find_ancestor(exp.Select) is select:
            if column.name in shared:
                column.set("table", exp.to_identifier(names[0]))
                continue
            hint = f"Write {names[0]}.{column.name} or {names[1]}.{column.name}."
            trouble = f"'{column.name}' could come from both sides of the temporal join"
            raise SqlError(trouble, context.place(column), hint)
    keys = [(name, name) for name in shared]
    keys += [_key(part, names, place) for part in _conditions(join)]
    if not keys:
        hint = f"Join on keys: ON {names[0]}.k = {names[1]}.k."
        raise SqlError("a temporal join needs a key", place, hint)
    operation = TemporalJoin(
        names[0],
        context.tables[view],
        names[1],
        tuple(keys),
        time.name,
        kind == "LEFT",
        place=place,
    )
    rows = select_from(left, exp.Star())
    join.pop()
    _expand_stars(select, names, shared)
    origin.set("this", exp.Subquery(this=rows))
    origin.this.meta.update(rows=names[0], versions=names[1], view=view)  # whose stars are whose
    context.staged.append((rows, operation))


def _expand_stars(select: exp.Select, names: tuple[str, str], shared: list[str]) -> None:
    """`*` is every column of both sides, which are structs now, and of what is joined to them."""
    others = [alias_of(join.this) for join in select.args.get("joins") or ()]
    others += [lateral.alias for lateral in select.args.get("laterals") or ()]
    for star in [each for each in select.expressions if isinstance(each, exp.Star)]:
        parts = {name: exp.Star() for name in (*names, *others)}
        if shared:
            parts[names[1]].set("except_", [exp.column(name) for name in shared])
        columns = [
            exp.Column(this=part, table=exp.to_identifier(name)) for name, part in parts.items()
        ]
        at = select.expressions.index(star)
        select.expressions[at : at + 1] = columns
        select.set("expressions", select.expressions)


def _conditions(join: exp.Join) -> list[exp.Expr]:
    on = join.args.get("on")
    return list(on.flatten()) if isinstance(on, exp.And) else [on] if on is not None else []


def _key(part: exp.Expr, names: tuple[str, str], place: Place) -> tuple[str, str]:
    pair = [part.this, part.expression] if isinstance(part, exp.EQ) else []
    sides = {each.table: each.name for each in pair if isinstance(each, exp.Column)}
    if set(sides) != set(names):
        hint = (
            f"Join on columns: ON {names[0]}.k = {names[1]}.k; compute a key in a subquery or a "
            "computed column, and move the rest to WHERE."
        )
        raise SqlError("a temporal join takes equal columns only", place, hint)
    return sides[names[0]], sides[names[1]]


def _unnest(select: exp.Select, context: Context) -> None:
    """`CROSS JOIN UNNEST(tags) AS t(tag)` is a LATERAL VIEW, which stands behind every join."""
    joins = list(select.args.get("joins") or [])
    for index, join in enumerate(joins):
        if not isinstance(join.this, exp.Unnest):
            continue
        if any(not isinstance(later.this, exp.Unnest) for later in joins[index + 1 :]):
            hint = "Put UNNEST behind the other joins, or in a subquery."
            raise SqlError("a join behind UNNEST is not supported", context.place(join.this), hint)
        select.append("laterals", _lateral_view(join, context))
        join.pop()


def _lateral_view(join: exp.Join, context: Context) -> exp.Lateral:
    unnest = join.this
    value = unnest.expressions[0]
    alias = unnest.args.get("alias") or exp.TableAlias()
    columns = [column.name for column in alias.args.get("columns") or ()]
    position = unnest.args.get("offset")
    function = _exploder(value, columns, context)
    if position:
        columns += [position.name] if isinstance(position, exp.Expr) else []
        if len(columns) != 2:
            hint = "Write UNNEST(a) WITH ORDINALITY AS t(value, position)."
            raise SqlError("WITH ORDINALITY names two columns", context.place(unnest), hint)
        item = f"named_struct('{columns[0]}', v, '{columns[1]}', i + 1)"
        function, value = "inline", raw(f"transform({spark_sql(value)}, (v, i) -> {item})")
    return exp.Lateral(
        this=exp.Anonymous(this=function, expressions=[value]),
        view=True,
        outer=join.side.upper() == "LEFT",
        alias=exp.TableAlias(
            this=exp.to_identifier(alias.name or "__unnested"),
            columns=[exp.to_identifier(column) for column in columns],
        ),
    )


def _exploder(value: exp.Expr, columns: list[str], context: Context) -> str:
    """Rows come apart into their fields, maps into keys and values, all else stays whole."""
    kinds = list(context.types_of(value.name)) if isinstance(value, exp.Column) else []
    if kinds:
        kind = kinds[0]
        of_rows = kind.name in ("ARRAY", "MULTISET") and kind.items[0].name == "ROW"
        return "inline" if of_rows and len(columns) != 1 else "explode"
    return "explode" if len(columns) == 1 else "inline"
