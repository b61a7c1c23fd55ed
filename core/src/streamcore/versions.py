"""Whether a distribution's requirements admit this version of core."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable

from .claims import normal

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*\(?([^;()]*)\)?\s*(;.*)?")
_PLAIN = re.compile(r"(>=|<=|>|<|==|!=)\s*(\d+(?:\.\d+)*)")
_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}


def unmet(requires: Iterable[str], name: str, version: str) -> str:
    """The first requirement on `name` that this version does not fulfil, or nothing."""
    for text in requires:
        match = _REQUIREMENT.fullmatch(text)
        if match and normal(match[1]) == name and _applies(match[3]):
            wish = match[2].strip()
            if wish and not admits(wish, version):
                return f"{match[1]}{wish}"
    return ""


def _applies(marker: str | None) -> bool:
    """Tell whether a requirement counts here; what an extra asks for does not."""
    if not marker:
        return True
    from packaging.markers import InvalidMarker, Marker

    try:
        return Marker(marker[1:]).evaluate({"extra": ""})
    except InvalidMarker:
        return False


def admits(wish: str, version: str) -> bool:
    """Tell whether a specifier such as `>=0.1,<0.2` admits a version."""
    clauses = [_PLAIN.fullmatch(clause.strip()) for clause in wish.split(",")]
    if all(clauses) and re.fullmatch(r"\d+(\.\d+)*", version):
        return all(_COMPARE[c[1]](_parts(version), _parts(c[2])) for c in clauses if c)
    # Importing the library takes longer than everything else the registry does.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(wish).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True


def _parts(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
