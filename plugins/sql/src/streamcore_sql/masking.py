"""Which stretches of a statement must not be shown: values of secret options, logins in URLs."""

from __future__ import annotations

import re

from streamcore.values import URL_LOGIN, is_sensitive

MASK = "***"

_GAP = r"(?:\s++|--[^\n]*+|/\*[^*]*+\*/)*+"
_KEY = re.compile(  # wherever one may stand, also in a statement whose quotes do not pair
    rf"""(?P<quote>['"`])(?P<key>[^'"`\n]++)(?P=quote){_GAP}(?:={_GAP}|(?=['"]))"""
    rf"""|(?<![\w.\-])(?P<bare>[\w.\-]++){_GAP}={_GAP}(?=(?:[uU]&)?['"])"""
)
_VALUE = re.compile(
    r"""(?:[uU]&)?(?:'(?P<single>(?:[^']|'')*+)|"(?P<double>[^"]*+))|(?P<open>[^\s,;()'"]++)"""
)


def secrets_in(statement: str) -> list[tuple[int, int]]:
    """Where the secrets of a statement start and end, in order; one never holds another."""
    found: list[tuple[int, int]] = []
    for key in _KEY.finditer(statement):
        if is_sensitive(key["key"] or key["bare"]) and (
            value := _VALUE.match(statement, key.end())
        ):
            found.append(value.span(value.lastgroup or 0))
    found += [login.span() for login in URL_LOGIN.finditer(statement)]
    return _apart(sorted(found))


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    apart: list[tuple[int, int]] = []
    for start, end in spans:
        if apart and start <= apart[-1][1]:
            start, end = apart[-1][0], max(end, apart.pop()[1])
        apart.append((start, end))
    return apart
