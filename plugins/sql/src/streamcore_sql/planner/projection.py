"""Which columns a query may use: Spark does not prune Python sources, so nobody else looks."""

from __future__ import annotations

from ..cursor import SqlText
from ..lexer import Kind, Token, name_value, tokens
from ..source import Source

_BEFORE_STAR = {"SELECT", "DISTINCT", "ALL", ",", "."}


def names_used(query: SqlText) -> frozenset[str] | None:
    """Every name in the query, in lower case; None when a `*` may stand for any of them.

    A name too many costs a column that nobody reads; a name too few would be a wrong answer. So
    aliases, functions and keywords count as names, and NATURAL JOIN counts as a star.
    """
    source = Source(query.text)
    names: set[str] = set()
    before = Token(Kind.SYMBOL, "", 0, 0)
    for token in tokens(source):
        if token.kind is Kind.WORD:
            names.add(token.word.lower())
        elif token.kind is Kind.QUOTED:
            names.add(name_value(source.text[token.start : token.end]).lower())
        elif token.word == "*" and (before.word in _BEFORE_STAR or before.kind is Kind.HINT):
            return None
        before = token
    return None if "natural" in names else frozenset(names)
