"""A Flink query to Spark SQL: the passes, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from ..cursor import SqlText
from ..errors import SqlError
from ..statements import Watermark
from .context import Context, Lookup, spark_sql
from .deduplication import drop_duplicates, keep_one_per_key
from .durations import milliseconds
from .functions import render_calls
from .joins import rewrite_joins
from .prepass import constant_rows
from .pruning import prune, words_by_table
from .result import Rewritten, Stage, TemporalJoin
from .tables import load, needed_columns
from .unknown_columns import refuse_unknown_columns
from .window_tables import expand_windows
from .windows import Windows


def rewrite(
    query: SqlText,
    *,
    lookup: Lookup = lambda name: None,
    streaming: bool = True,
    approximate_distinct: bool = False,
    prefix: str = "",
) -> Rewritten:
    """Rewrite a query.

    `lookup` finds the statement that made a table or view, by the parts of its name. A bounded
    query (`streaming=False`) may sort, rank and count distinct as Spark does. `prefix` starts
    the name of every temporary view.
    """
    if rows := constant_rows(query):
        return Rewritten(rows)
    context = Context(lookup, streaming, approximate_distinct, prefix)
    try:
        return _rewrite(query, context)
    except RecursionError:
        raise SqlError("this query is nested too deeply", query.place) from None


def _rewrite(query: SqlText, context: Context) -> Rewritten:
    streaming = context.streaming
    tree = exp.Subquery(this=load(query, context))
    refuse_unknown_columns(tree, context)
    prune(tree, context)
    context.words = words_by_table(tree, context)
    windows = Windows(context)
    expand_windows(tree, windows)
    rewrite_joins(tree, context)
    if streaming:
        keep_one_per_key(tree, context)
    needed_columns(tree.this, context)
    if streaming:
        _refuse(tree, context)
        drop_duplicates(tree, context)
    windows.group(tree)
    if any(context.is_call(node, "PROCTIME") for node in tree.find_all(exp.Anonymous)):
        place = next(call.place for _, call in context.calls(tree) if call.name == "PROCTIME")
        context.note("PROCTIME() is the time the micro-batch started, the same for its rows", place)
    if streaming:
        _note_differences(context)
    for hint in context.aside.hints:
        context.note(f"the hint {hint.text} is left out: Spark plans by itself", hint)
    limited = tree.this.args.get("limit") is not None
    ordered = tree.this.args.get("order") is not None
    tree.set("this", render_calls(tree.this.pop(), context))
    stages = tuple(_stages(tree, context))
    return Rewritten(
        spark_sql(tree.this),
        stages,
        tuple(context.tables.values()),
        tuple(context.windows),
        tuple(context.aggregations),
        tuple(context.joins),
        context.keeps_last,
        limited,
        ordered,
        tuple(context.notes),
    )


def _note_differences(context: Context) -> None:
    """Say of windows and joins in time how they come otherwise than in Flink."""
    for window in context.windows:
        if window.kind == "CUMULATE":
            text = "CUMULATE tells its windows whenever they change, not once when they close"
            context.note(text, window.place)
        elif window.processing_time:
            text = "a window over processing time is told whenever it changes, not when it closes"
            context.note(text, window.place)
    for join in context.joins:
        if join.temporal == "event-time":
            text = "a temporal join keeps every version of a row for good"
            context.note(text, join.place)
        elif join.temporal == "processing-time":
            text = "a lookup takes the table as it is when the micro-batch runs, not row by row"
            context.note(text, join.place)


def rewrite_expression(expression: SqlText, *, lookup: Lookup = lambda name: None) -> str:
    """Rewrite an expression, such as that of a computed column."""
    context = Context(lookup)
    try:
        return spark_sql(render_calls(context.parse(expression), context))
    except RecursionError:
        raise SqlError("this expression is nested too deeply", expression.place) from None


def watermark_delay(watermark: Watermark) -> int:
    """How many milliseconds a watermark stays behind its column."""
    context = Context(lambda name: None)
    tree = context.parse(watermark.expression)
    place = watermark.expression.place
    column = tree.this if isinstance(tree, exp.Sub) else tree
    parts = tuple(part.name for part in column.parts) if isinstance(column, exp.Column) else ()
    if parts != watermark.column.parts:
        name = str(watermark.column)
        hint = f"Write WATERMARK FOR {name} AS {name} - INTERVAL '5' SECOND."
        raise SqlError("Spark's watermark is the column less a fixed time", place, hint)
    return milliseconds(tree.expression, "delay", place) if isinstance(tree, exp.Sub) else 0


def _refuse(tree: exp.Expr, context: Context) -> None:
    for node in tree.find_all(exp.Except, exp.Intersect):
        name = "EXCEPT" if isinstance(node, exp.Except) else "INTERSECT"
        hint = "Join the two instead, or read bounded tables."
        raise SqlError(f"{name} is not supported on a stream", context.place(node.right), hint)
    for order in tree.find_all(exp.Order):
        if isinstance(order.parent, exp.Select | exp.SetOperation):
            hint = "Leave it out: rows come as they come. Bounded tables can be sorted."
            raise SqlError("a stream cannot be sorted", context.place(order), hint)


# --- stages --------------------------------------------------------------------------------


def _stages(tree: exp.Expr, context: Context) -> Iterator[Stage]:
    """Cut out what SQL cannot say, inner parts first, and leave a view's name in their place."""
    if not context.staged:
        return
    operations = {id(node): operation for node, operation in context.staged}
    nodes = [node for node in _inner_first(tree) if id(node) in operations]
    for number, node in enumerate(nodes, 1):
        view = f"{context.prefix}__step{number}"
        sql = spark_sql(_with_ctes(node))
        node.replace(exp.select("*").from_(exp.to_identifier(view)))
        operation = operations[id(node)]
        if isinstance(operation, TemporalJoin):  # by now its columns are known
            operation = replace(operation, right=context.tables[operation.right.view])
        yield Stage(view, sql, operation)


def _inner_first(node: exp.Expr) -> Iterator[exp.Expr]:
    clauses = sorted(node.args.items(), key=lambda item: item[0] != "with_")
    for _, value in clauses:
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield from _inner_first(child)
    yield node


def _with_ctes(node: exp.Expr) -> exp.Expr:
    """A query on its own, with the common table expressions it names."""
    visible = _visible_ctes(node)
    needed: list[exp.CTE] = []
    wanted = {table.name for table in node.find_all(exp.Table)}
    for cte in reversed(visible):
        if cte.alias in wanted:
            needed.insert(0, cte)
            wanted |= {table.name for table in cte.find_all(exp.Table)}
    alone = node.copy()
    if needed:
        own = alone.args.get("with_")
        ctes = [*(cte.copy() for cte in needed), *(own.expressions if own else [])]
        alone.set("with_", exp.With(expressions=ctes))
    return alone


def _visible_ctes(node: exp.Expr) -> list[exp.CTE]:
    visible: list[exp.CTE] = []
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            siblings = parent.expressions
            visible = [*siblings[: [id(s) for s in siblings].index(id(child))], *visible]
        else:
            clause = parent.args.get("with_")
            if clause is not None and clause is not child:
                visible = [*clause.expressions, *visible]
        child, parent = parent, parent.parent
    return visible
