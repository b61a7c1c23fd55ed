"""`${NAME}` in the texts of a job file, filled in after YAML is read: no value can add keys.

`$${` stays `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..source import Place
from ..variables import Variables, is_secret
from .document import Node
from .errors import JobFileError, Problems

_VARIABLE = re.compile(r"(?P<escaped>\$\$\{)|\$\{(?P<name>[^{}\n]*)\}")


def fill(
    root: Node, values: Mapping[str, str], secrets: Mapping[str, str], problems: Problems
) -> bool:
    """Fill in every variable; tell whether each was defined, and of those that were not."""
    variables, before = Variables(values, secrets), len(problems)
    done: set[int] = set()
    for node in root.scalars():
        if "${" in node.text and id(node) not in done:
            done.add(id(node))
            _fill(node, variables, problems)
    return len(problems) == before


def _fill(node: Node, variables: Variables, problems: Problems) -> None:
    def value_of(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "${"
        name = match["name"].strip()
        if (value := variables.get(name)) is not None:
            node.secret |= is_secret(name)
            return value
        place = node.place
        if node.exact:
            place = Place(place.source, place.start + match.start(), place.start + match.end())
        trouble = f"variable '{name}' is not defined"
        problems.take(JobFileError(trouble, place, variables.hint(name)))
        node.unfilled = True
        return match[0]

    node.value = _VARIABLE.sub(value_of, node.text)
    node.exact = False
