"""Function calls to Spark's text, from the inside out."""

from __future__ import annotations

from sqlglot import exp

from ..errors import SqlError
from .context import Context, raw, spark_sql
from .function_table import AGGREGATES, REFUSED, TEMPLATES
from .placeholders import Call
from .special_calls import SPECIAL, Site
from .whole_numbers import divide, is_whole


def render_calls(tree: exp.Expr, context: Context) -> exp.Expr:
    """Replace every call by Spark's text for it."""
    holder = exp.Paren(this=tree)  # so that the outermost node, too, can be replaced
    for division in list(holder.find_all(exp.Div)):
        divide(division, context)
    for bracket in list(holder.find_all(exp.Bracket)):
        # Flink counts elements from 1 and answers NULL beyond the last; so does this, and for maps.
        values = [bracket.this, *bracket.expressions]
        bracket.replace(exp.Anonymous(this="try_element_at", expressions=values))
    for like in holder.find_all(exp.Like):
        _keep_backslashes(like)
    for node in reversed(list(holder.find_all(exp.Anonymous, bfs=True))):
        if call := context.call_of(node):
            _replace(node, call, context)
    rendered = holder.this
    assert isinstance(rendered, exp.Expr)
    return rendered.pop()


def is_aggregate(node: exp.Expr, context: Context) -> bool:
    """Whether a call sums up rows: not inside an OVER clause."""
    call = context.call_of(node)
    parent = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
    return call is not None and call.name in AGGREGATES and not isinstance(parent, exp.Window)


def _operand(node: exp.Expr) -> str:
    """An argument's text, in parentheses where an operator beside it could tear it apart."""
    text = spark_sql(node)
    apart = isinstance(node, exp.Binary | exp.Not | exp.Between | exp.In) and not isinstance(
        node, exp.Dot | exp.Kwarg
    )
    return f"({text})" if apart else text


def _keep_backslashes(like: exp.Like) -> None:
    """Flink has no escape character unless one is named; Spark's is the backslash."""
    pattern = like.expression
    if isinstance(pattern, exp.Literal) and not isinstance(like.parent, exp.Escape):
        pattern.set("this", str(pattern.this).replace("\\", "\\\\"))


def _replace(node: exp.Anonymous, call: Call, context: Context) -> None:
    if call.name in REFUSED:
        raise SqlError(f"{call.name} is not supported", call.place, REFUSED[call.name])
    clause = node.parent if isinstance(node.parent, exp.Filter) else None
    where = f" FILTER({spark_sql(clause.expression).strip()})" if clause else ""
    text, has_filter = _text(node, call, context, where)
    (clause if clause and has_filter else node).replace(raw(text))


def _text(node: exp.Anonymous, call: Call, context: Context, where: str) -> tuple[str, bool]:
    """Spark's text for a call, and whether its FILTER clause is already in there."""
    first = node.expressions[0] if node.expressions else None
    if isinstance(first, exp.Distinct) and call.name in AGGREGATES:
        return _distinct(call, [spark_sql(value) for value in first.expressions], context, where)
    args = [_operand(arg) for arg in node.expressions]
    site = Site(call, node.expressions, args, context)
    if call.name == "AVG" and is_aggregate(node, context) and is_whole(site.nodes[0], context):
        return f"CAST(avg({args[0]}){where} AS BIGINT)", True
    if call.name in SPECIAL:
        try:
            return SPECIAL[call.name](site), False
        except IndexError:
            raise SqlError(f"{call.name} lacks an argument", call.place) from None
    template = TEMPLATES.get(f"{call.name}/{len(args)}", TEMPLATES.get(call.name))
    if template is None:
        return site.plain(), False
    return template.format(*args, all=", ".join(args), filter=where), "{filter}" in template


def _distinct(call: Call, values: list[str], context: Context, where: str) -> tuple[str, bool]:
    if not values:
        raise SqlError(f"{call.name}(DISTINCT) lacks an argument", call.place)
    if call.name in ("MIN", "MAX"):
        return f"{call.written}({values[0]})", False
    if not context.streaming:
        return f"{call.written}(DISTINCT {', '.join(values)})", False
    if call.name == "COUNT":
        value = values[0]
        if len(values) > 1:
            filled = " AND ".join(f"{each} IS NOT NULL" for each in values)
            value = f"CASE WHEN {filled} THEN struct({', '.join(values)}) END"
        if context.approximate_distinct:
            return f"approx_count_distinct({value}){where}", True
        return f"CAST(size(collect_set({value}){where}) AS BIGINT)", True
    if call.name in ("LISTAGG", "STRING_AGG"):
        separator = values[1] if len(values) > 1 else "','"
        return f"array_join(collect_set({values[0]}){where}, {separator})", True
    hint = "Aggregate a subquery of distinct rows instead: FROM (SELECT DISTINCT k, x FROM t)."
    raise SqlError(f"{call.name}(DISTINCT ...) is not supported on a stream", call.place, hint)
