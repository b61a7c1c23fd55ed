"""Tables and views of a query: each name becomes a temporary view, each view its own query."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from ..cursor import SqlText
from ..errors import SqlError
from ..statements import CreateTable, CreateView, Name, Option
from .context import Context, alias_of, sources
from .result import TableRef


def load(query: SqlText, context: Context, path: tuple[CreateView, ...] = ()) -> exp.Expr:
    """Parse a query, put the queries of its views in, and note the tables it reads."""
    tree = exp.Subquery(this=context.parse(query))
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    for node in list(tree.find_all(exp.Table, bfs=False)):
        if not isinstance(node.this, exp.Identifier):
            continue
        reference = context.reference_of(node)
        options = reference.options if reference else ()
        parts = tuple(part.name for part in node.parts)
        label = reference.name if reference else Name(parts, place=context.place(node))
        if not (label.parts[0] in ctes and len(label.parts) == 1):
            _put(node, label, options, context, path)
    for column in list(tree.find_all(exp.Column, bfs=False)):
        if reference := context.reference_of(column):
            table = exp.Table(this=exp.to_identifier(reference.name.last))
            table.meta["partition_by"] = reference.partition_by
            column.replace(table)
            if not (reference.name.last in ctes and len(reference.name.parts) == 1):
                _put(table, reference.name, reference.options, context, path)
    body = tree.this
    assert isinstance(body, exp.Expr)
    return body.pop()


def _put(
    node: exp.Table,
    label: Name,
    options: tuple[Option, ...],
    context: Context,
    path: tuple[CreateView, ...],
) -> None:
    found = context.lookup(label.parts)
    alias = node.args.get("alias")
    if isinstance(found, CreateView):
        node.replace(_view(found, label, alias, context, path, node))
        return
    ref = _table_ref(label, options, context)
    if alias is None and ref.view != label.last:
        alias = exp.TableAlias(this=exp.to_identifier(label.last, quoted=True))
    table = exp.Table(this=exp.to_identifier(ref.view), alias=alias)
    table.args["version"] = node.args.get("version")
    table.meta.update(node.meta, view=ref.view)
    table.this.meta.update(node.this.meta)
    node.replace(table)


def _view(
    view: CreateView,
    label: Name,
    alias: exp.Expr | None,
    context: Context,
    path: tuple[CreateView, ...],
    node: exp.Table,
) -> exp.Subquery:
    if view in path:
        chain = " -> ".join(str(each.name) for each in (*path[path.index(view) :], view))
        raise SqlError(f"view '{view.name}' reads itself: {chain}", label.place)
    body = load(view.query, context, (*path, view))
    name = alias if alias is not None else exp.TableAlias(this=exp.to_identifier(label.last))
    if view.columns and not name.args.get("columns"):
        name.set("columns", [exp.to_identifier(column.last) for column in view.columns])
    subquery = exp.Subquery(this=body, alias=name)
    subquery.meta.update(node.meta)
    return subquery


def _table_ref(label: Name, options: tuple[Option, ...], context: Context) -> TableRef:
    for ref in context.tables.values():
        if ref.name == label.parts and ref.options == options:
            return ref
    base = context.prefix + re.sub(r"\W", "_", "_".join(label.parts))
    taken = {view.lower() for view in context.tables}
    view, count = base, 1
    while view.lower() in taken or (options and count == 1):  # the plain name is the plain table's
        count += 1
        view = f"{base}_{count}"
    ref = TableRef(label.parts, view, options, place=label.place)
    context.tables[view] = ref
    return ref


def mark_lookup(table: exp.Expr, context: Context) -> None:
    """Remember that a table is read anew for each micro-batch."""
    view = table.meta.get("view")
    if view:
        context.tables[view] = replace(context.tables[view], lookup=True)


# --- which columns are needed ------------------------------------------------------------


def needed_columns(tree: exp.Expr, context: Context) -> None:
    """Set `columns` of each table: those named anywhere, or all where a `*` reaches the result."""
    for node, call in context.calls(tree):
        select = node.find_ancestor(exp.Select)
        if select and call.name != "COUNT" and any(each.is_star for each in node.expressions):
            select.meta["whole"] = True  # such as STRUCT(*)
    whole: set[str] = set()
    _demand(tree, True, tree, whole, set())
    for view, ref in context.tables.items():
        table = context.lookup(ref.name)
        if isinstance(table, CreateTable) and view not in whole and table.columns:
            names = tuple(c.name for c in table.columns if c.name.lower() in context.words[view])
            context.tables[view] = replace(ref, columns=names)


def _demand(
    node: exp.Expr,
    everything: bool,
    tree: exp.Expr,
    whole: set[str],
    seen: set[tuple[int, bool]],
) -> None:
    """Follow the columns from the result down; `everything` when all of them are wanted."""
    if (id(node), everything) in seen:
        return
    seen.add((id(node), everything))
    if isinstance(node, exp.Subquery):
        _demand(node.this, everything, tree, whole, seen)
    elif isinstance(node, exp.SetOperation):
        _demand(node.left, True, tree, whole, seen)  # rows are matched by position
        _demand(node.right, True, tree, whole, seen)
    elif isinstance(node, exp.Select):
        everything = everything or node.args.get("distinct") is not None
        starred = _starred(node) if everything else set()
        joins = node.args.get("joins") or ()
        if node.meta.get("whole") or any(join.method.upper() == "NATURAL" for join in joins):
            starred.add("*")  # natural joins compare every name that both sides have
        for source in sources(node):
            names = {"*", alias_of(source), source.meta.get("rows")}
            _demand_source(source, bool(names & starred), tree, whole, seen)
            if source.meta.get("versions") in starred:
                whole.add(source.meta["view"])
        for nested in node.find_all(exp.Subquery, exp.Exists, exp.In):
            inner = nested.this if isinstance(nested, exp.Exists) else nested.args.get("query")
            inner = nested if isinstance(nested, exp.Subquery) else inner
            if inner is not None and not isinstance(nested.parent, exp.From | exp.Join):
                _demand(inner, False, tree, whole, seen)


def _starred(select: exp.Select) -> set[str]:
    """What the stars of a SELECT stand for: `*` for every source, else aliases."""
    if select.meta.get("kept"):  # a row as a whole, and its fields again
        return {"*"}
    found = set()
    for projection in select.expressions:
        if isinstance(projection, exp.Star):
            found.add("*")
        elif isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star):
            found.add(projection.table)
    return found


def _demand_source(
    source: exp.Expr,
    everything: bool,
    tree: exp.Expr,
    whole: set[str],
    seen: set[tuple[int, bool]],
) -> None:
    alias = source.args.get("alias")
    renamed = bool(alias and alias.args.get("columns"))  # by position
    if isinstance(source, exp.Table):
        view = source.meta.get("view")
        if view and (everything or renamed):
            whole.add(view)
        elif not view:
            for cte in tree.root().find_all(exp.CTE):
                if cte.alias == source.name:
                    renamed = renamed or bool(cte.args["alias"].args.get("columns"))
                    _demand(cte.this, everything or renamed, tree, whole, seen)
    elif isinstance(source, exp.Subquery):
        _demand(source.this, everything or renamed, tree, whole, seen)
