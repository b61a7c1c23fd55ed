"""The SQL expressions of a job file: split, rewritten for Spark, and told of by their place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..cursor import Cursor, SqlText
from ..errors import SqlError
from ..lexer import name_literal
from ..rewrite import rewrite_expression
from ..source import Place, Source
from .document import Node
from .errors import JobFileError

STAR = "*"


@contextmanager
def told_at(node: Node, label: str) -> Iterator[None]:
    """Tell of mistakes inside a text by their place in the file."""
    try:
        yield
    except JobFileError:
        raise
    except SqlError as error:
        problems = []
        for each in error.problems:
            place = _in_file(each.place, node)
            problems.append(JobFileError(f"{label}: {each.trouble}", place, each.hint))
        raise JobFileError.together(problems) from error


def _in_file(place: Place, node: Node) -> Place:
    if place.source is node.place.source:
        return place
    if node.exact and len(place.source.text) == len(node.text):
        return node.place.within(place.start, max(place.end, place.start + 1))
    return node.place


def projection(node: Node) -> list[str]:
    r"""The entries of a projection as Spark reads them; `\*` and `*` give STAR."""
    text = node.text.replace(r"\*", " *")
    cursor = Cursor(Source(text))
    items = []
    while True:
        items.append(_item(cursor, node))
        if cursor.at_end():
            return items
        cursor.expect(",")


def _item(cursor: Cursor, node: Node) -> str:
    piece = cursor.verbatim("a column or an expression")
    return STAR if piece.text.strip() == STAR else rewrite_expression(_placed(piece, node))


def condition(node: Node) -> str:
    """The filter as Spark reads it."""
    cursor = Cursor(Source(node.text))
    piece = cursor.verbatim("a condition")
    if not cursor.at_end():
        cursor.fail("AND, OR or the end")
    return rewrite_expression(_placed(piece, node))


def sql_text(node: Node) -> SqlText:
    """A whole text of the file, for errors of Spark about a part of it."""
    return _placed(SqlText(node.text, Place(Source(node.text), 0, len(node.text))), node)


def _placed(piece: SqlText, node: Node) -> SqlText:
    if not node.exact:
        return piece
    return SqlText(piece.text, node.place.within(piece.place.start, piece.place.end))


def quoted(name: str) -> str:
    """A column's name as Spark reads it."""
    return name_literal(name)
