"""Window functions over tables, TUMBLE, HOP, SESSION and CUMULATE: subqueries with a window."""

from __future__ import annotations

from sqlglot import exp

from ..errors import SqlError, did_you_mean
from ..statements import ComputedColumn, CreateTable
from .context import Context, named, select_from, spark_sql
from .durations import duration, milliseconds
from .placeholders import Call
from .result import Window
from .windows import Windows

_ARGUMENTS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}


def expand_windows(tree: exp.Expr, windows: Windows) -> None:
    """Replace each window function in FROM by a subquery with its columns."""
    for table in list(tree.find_all(exp.Table, bfs=False)):
        node = table.this
        if isinstance(node, exp.Anonymous) and str(node.this).upper() == "TABLE":
            node = node.expressions[0]
        call = windows.context.call_of(node)
        if call and call.name in _ARGUMENTS:
            table.replace(_subquery(node, call, table.args.get("alias"), windows))
        elif isinstance(node, exp.Anonymous):
            _refuse_unknown(node, windows.context)


def _refuse_unknown(node: exp.Anonymous, context: Context) -> None:
    if any(context.is_call(each, "DESCRIPTOR") for each in node.expressions):
        call = context.call_of(node)
        name = call.name if call else str(node.this).upper()
        hint = did_you_mean(name, _ARGUMENTS) or f"There are {', '.join(_ARGUMENTS)}."
        place = call.place if call else context.place(node)
        raise SqlError(f"no window function called '{name}'", place, hint)


def _subquery(
    node: exp.Anonymous, call: Call, alias: exp.Expr | None, windows: Windows
) -> exp.Subquery:
    given = _arguments(node, call)
    window, data = _window(given, call, windows.context)
    column = windows.add(window)
    if window.kind == "CUMULATE":
        inner = _cumulate(window, column, data)
        ends = f"({column}.end - INTERVAL '0.001' SECOND)"
    else:
        inner = select_from(data, exp.Star(), named(_spark_window(window), column))
        ends = f"window_time({column})"
    outer = select_from(
        inner,
        exp.Star(),
        named(f"{column}.start", "window_start"),
        named(f"{column}.end", "window_end"),
        named(ends, "window_time"),
    )
    windows.exposed[id(outer)] = column
    return exp.Subquery(this=outer, alias=alias)


def _window(given: dict[str, exp.Expr], call: Call, context: Context) -> tuple[Window, exp.Expr]:
    data, descriptor = given["DATA"], given["TIMECOL"]
    if isinstance(data, exp.Subquery) and data.args.get("alias") is None:
        data.set("alias", exp.TableAlias(this=exp.to_identifier("__data")))
    if not context.is_call(descriptor, "DESCRIPTOR") or not descriptor.expressions:
        hint = f"Write {call.name}(TABLE t, DESCRIPTOR(ts), ...)."
        raise SqlError(f"{call.name} needs a DESCRIPTOR(column)", call.place, hint)
    time = descriptor.expressions[0]
    _check_time(time, data, context)
    lengths = {
        key: milliseconds(given[key], f"{key} of {call.name}", call.place)
        for key in ("SIZE", "SLIDE", "STEP", "GAP", "OFFSET")
        if key in given
    }
    slide = lengths.get("SLIDE", lengths.get("STEP"))
    size = lengths.get("SIZE", lengths.get("GAP", 0))
    if call.name == "CUMULATE" and (not slide or size % slide):
        hint = "Choose a size that is a multiple of the step."
        raise SqlError("CUMULATE: the step does not divide the size", call.place, hint)
    window = Window(
        call.name,  # type: ignore[arg-type] # a key of _ARGUMENTS
        spark_sql(time),
        size,
        slide,
        lengths.get("OFFSET", 0),
        tuple(data.meta.get("partition_by", ())),
        context.is_processing_time(time, time),
        place=call.place,
    )
    return window, data


def _check_time(time: exp.Expr, data: exp.Expr, context: Context) -> None:
    """Refuse a column of a table that is known to be no time."""
    table = context.lookup(context.tables[data.meta["view"]].name) if "view" in data.meta else None
    for column in table.columns if isinstance(table, CreateTable) else ():
        if column.name != time.name or isinstance(column, ComputedColumn):
            continue
        if column.type.name not in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            trouble = f"'{column.name}' is {column.type.sql()}, and windows need a time"
            hint = f"Declare one in the table: ts AS TO_TIMESTAMP_LTZ({column.name}, 3)."
            raise SqlError(trouble, context.place(time), hint)


def _arguments(node: exp.Anonymous, call: Call) -> dict[str, exp.Expr]:
    names = _ARGUMENTS[call.name]
    given: dict[str, exp.Expr] = {}
    for position, arg in enumerate(node.expressions):
        if isinstance(arg, exp.Kwarg):
            given[str(arg.this.name).upper()] = arg.expression
        elif position < len(names):
            given[names[position]] = arg
    needed = [name for name in names if name != "OFFSET" and name not in given]
    unknown = [name for name in given if name not in names]
    if needed or unknown or len(node.expressions) > len(names):
        form = ", ".join(names[:-1] if names[-1] == "OFFSET" else names)
        raise SqlError(f"{call.name} takes {form}", call.place, _example(call.name))
    return given


def _example(name: str) -> str:
    lengths = {"HOP": "INTERVAL '5' MINUTE, ", "CUMULATE": "INTERVAL '1' MINUTE, "}.get(name, "")
    return f"Write {name}(TABLE t, DESCRIPTOR(ts), {lengths}INTERVAL '10' MINUTE)."


def _spark_window(window: Window) -> str:
    if window.kind == "SESSION":
        return f"session_window({window.time}, '{duration(window.size)}')"
    lengths = [window.size]
    if window.slide or window.offset:
        lengths.append(window.slide or window.size)
    if window.offset:
        lengths.append(window.offset)
    texts = [f"'{duration(length)}'" for length in lengths]
    return f"window({', '.join([window.time, *texts])})"


def _cumulate(window: Window, column: str, data: exp.Expr) -> exp.Select:
    """Each row belongs to every window of its start that ends after it."""
    assert window.slide
    whole = _spark_window(Window("TUMBLE", window.time, window.size, None, window.offset))
    step = f"INTERVAL '{window.slide / 1000:g}' SECOND"
    bounds = f"named_struct('start', {column}.start, 'end', {column}.start + i * {step})"
    ends = f"transform(sequence(1, {window.size // window.slide}), i -> {bounds})"
    exploded = f"explode(filter({ends}, w -> w.end > {window.time}))"
    inner = select_from(data, exp.Star(), named(whole, column))
    return select_from(inner, exp.Star(except_=[exp.column(column)]), named(exploded, column))
