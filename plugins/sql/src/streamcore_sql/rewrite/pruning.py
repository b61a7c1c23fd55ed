"""Columns of inner queries that nobody asks for, taken out, so that no table is read for them.

Spark would not compute them either, but it does not tell Python sources what it leaves out. A name
counts as asked for wherever it stands around the inner query, so that none is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from .context import Context, output_name, sources
from .functions import is_aggregate

_KEPT = frozenset({"window_start", "window_end", "window_time"})
_GENERATORS = frozenset({"EXPLODE", "POSEXPLODE", "INLINE", "STACK", "JSON_TUPLE"})
_TAIL = re.compile(r"(?i)(RETURNING|NULL|ERROR|DEFAULT|EMPTY|WITH|WITHOUT|TRUE|FALSE|ABSENT)\b")


def prune(tree: exp.Expr, context: Context) -> None:
    """Take unused columns out of subqueries, views and common table expressions."""
    _visit(tree.this, None, tree, context)


def words_by_table(tree: exp.Expr, context: Context) -> dict[str, set[str]]:
    """The names a query has for columns of each of its tables, by their views, in lower case."""
    views: dict[str, set[str] | None] = {}
    for node in tree.find_all(exp.Table, exp.Subquery, exp.CTE, exp.Unnest, exp.Lateral):
        view, name = node.meta.get("view"), node.alias_or_name.lower()
        before = views.get(name, set())
        views[name] = None if before is None or view is None else {*before, view}
    common = _partition_keys(context)
    own: dict[str, set[str]] = {view: set() for view in context.tables}
    for identifier in tree.find_all(exp.Identifier):
        column = identifier.parent
        qualifier = ""
        if isinstance(column, exp.Column) and identifier is column.this:
            qualifier = column.table.lower()
        places = views.get(qualifier) if qualifier else None
        for words in [own[view] for view in places] if places else [common]:
            words.add(identifier.name.lower())
    common.update(_words_of_tails(tree, context))
    return {view: words | common for view, words in own.items()}


def _visit(node: exp.Expr, wanted: set[str] | None, tree: exp.Expr, context: Context) -> None:
    """Prune a query that is asked for some of its columns, None for all, then what it reads."""
    if not isinstance(node, exp.Select):
        for select in _outermost_selects(node):
            _visit(select, None, tree, context)
        return
    if wanted is not None:
        _drop(node, wanted, context)
    inner = [source for source in sources(node) if isinstance(source, exp.Subquery)]
    named = _names_in(node, inner, context)
    for source in inner:
        asked = _asked_of(node, source, wanted, named, context)
        _visit(source.this, asked, tree, context)
    for cte in reversed(_ctes_of(node)):
        _visit(cte.this, _asked_of_cte(cte, tree, context), tree, context)
    for nested in _outermost_selects(node, [*inner, node.args.get("with_")]):
        _visit(nested, None, tree, context)


def _drop(select: exp.Select, wanted: set[str], context: Context) -> None:
    if select.args.get("distinct") is not None or _is_counted(select):
        return
    calls = [call.name for _, call in context.calls(select)]
    if not _GENERATORS.isdisjoint(calls):
        return
    if select.args.get("group") is None and any(
        is_aggregate(node, context) for each in select.expressions for node in each.walk()
    ):
        return  # one row, whatever it reads
    for projection in reversed(list(select.expressions)):
        name = output_name(projection).lower()
        if projection.is_star or not name or name in wanted | _KEPT or len(select.expressions) == 1:
            continue
        without = (projection, select.args.get("from_"), select.args.get("with_"))
        others = [each for each in select.iter_expressions() if all(each is not w for w in without)]
        if not any(name in _identifiers(each) for each in others):
            projection.pop()


def _is_counted(select: exp.Select) -> bool:
    """Whether columns are told by their number, as in GROUP BY 1."""
    clauses = (select.args.get("group"), select.args.get("order"))
    return any(
        isinstance(each.this if isinstance(each, exp.Ordered) else each, exp.Literal)
        for clause in clauses
        if clause is not None
        for each in clause.expressions
    )


def _asked_of(
    reader: exp.Select,
    source: exp.Subquery,
    wanted: set[str] | None,
    named: set[str],
    context: Context,
) -> set[str] | None:
    """The columns that a SELECT asks a subquery for, by names that may be its; None for all."""
    alias = source.args.get("alias")
    if (alias and alias.args.get("columns")) or _takes_rows_whole(reader, context):
        return None
    if not any(each.is_star for each in reader.expressions):
        return named
    return None if wanted is None else named | wanted


def _asked_of_cte(cte: exp.CTE, tree: exp.Expr, context: Context) -> set[str] | None:
    clause = cte.parent
    assert clause is not None
    if cte.args["alias"].args.get("columns") or clause.args.get("recursive"):
        return None
    for table in tree.find_all(exp.Table):
        if table.name == cte.alias and not table.meta.get("view"):
            reader, alias = table.find_ancestor(exp.Select), table.args.get("alias")
            if reader is None or _takes_rows_whole(reader, context) or (alias and alias.columns):
                return None
            if any(each.is_star for each in reader.expressions):
                return None
    return _names_in(tree, [cte], context)


def _takes_rows_whole(reader: exp.Select, context: Context) -> bool:
    """Whether a SELECT means columns that it does not name, otherwise than by its stars."""
    joins = reader.args.get("joins") or ()
    if any(join.method.upper() == "NATURAL" for join in joins) or reader.find(exp.Pivot):
        return True
    return any(
        call.name != "COUNT" and any(each.is_star for each in node.expressions)
        for node, call in context.calls(reader)
    )


def _names_in(node: exp.Expr, without: Sequence[exp.Expr], context: Context) -> set[str]:
    """Every name within a node, but for those inside some of its parts."""
    inside = {id(each) for part in without for each in part.this.find_all(exp.Identifier)}
    found = {each.name.lower() for each in node.find_all(exp.Identifier) if id(each) not in inside}
    return found | set(_words_of_tails(node, context)) | _partition_keys(context)


def _identifiers(node: exp.Expr) -> set[str]:
    return {each.name.lower() for each in node.find_all(exp.Identifier)}


def _partition_keys(context: Context) -> set[str]:
    """The keys of sessions, which stand beside their tables."""
    return {key.lower() for ref in context.aside.references for key in ref.partition_by}


def _words_of_tails(node: exp.Expr, context: Context) -> Iterator[str]:
    """Names in what is handed over as text: `DEFAULT x ON EMPTY` of JSON functions."""
    for call_node, call in context.calls(node):
        last = call_node.expressions[-1] if call_node.expressions else None
        is_tail = call.name.startswith("JSON_") and isinstance(last, exp.Literal)
        if is_tail and last is not None and _TAIL.match(last.name):
            yield from (word.lower() for word in re.findall(r"\w+", last.name))


def _ctes_of(select: exp.Select) -> list[exp.CTE]:
    clause = select.args.get("with_")
    return list(clause.expressions) if clause is not None else []


def _outermost_selects(
    node: exp.Expr, without: Sequence[exp.Expr | None] = ()
) -> Iterator[exp.Select]:
    waiting = [node]
    while waiting:  # no recursion: a UNION of hundreds is hundreds deep
        for child in waiting.pop().iter_expressions():
            if isinstance(child, exp.Select):
                yield child
            elif all(child is not each for each in without):
                waiting.append(child)
