"""`${NAME}` in the texts of a job file, filled in after YAML is read: no value can add keys.

`$${` stays `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import did_you_mean
from ..source import Place
from .document import Node
from .errors import JobFileError, Problems

_VARIABLE = re.compile(r"(?P<escaped>\$\$\{)|\$\{(?P<name>[^{}\n]*)\}")
_SECRETS = "secret_values."


def fill(root: Node, values: Mapping[str, str], secrets: Mapping[str, str]) -> None:
    """Fill in every variable, or raise one error that tells of all that are not defined."""
    known = {**values, **{_SECRETS + key: value for key, value in secrets.items()}}
    problems = Problems()
    done: set[int] = set()
    for node in root.scalars():
        if "${" in node.text and id(node) not in done:
            done.add(id(node))
            _fill(node, known, problems)
    problems.raise_any()


def _fill(node: Node, known: Mapping[str, str], problems: Problems) -> None:
    def value_of(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "${"
        name = match["name"].strip()
        if name in known:
            node.secret |= name.startswith(_SECRETS)
            return known[name]
        place = node.place
        if node.exact:
            place = Place(place.source, place.start + match.start(), place.start + match.end())
        problems.take(JobFileError(f"variable '{name}' is not defined", place, _hint(name, known)))
        return ""

    node.value = _VARIABLE.sub(value_of, node.text)
    node.exact = False


def _hint(name: str, known: Mapping[str, str]) -> str:
    if near := did_you_mean(name, known):
        return near
    if name.startswith(_SECRETS):
        return "Give it with --secrets FILE, a file of NAME=VALUE lines."
    return "Define it with --var NAME=VALUE, with --env-file FILE or in the environment."
