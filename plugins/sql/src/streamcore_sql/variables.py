"""`${NAME}` and `${secret_values.name}` in scripts, filled in without losing places or secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from .errors import SqlError, did_you_mean
from .source import Filled, Place, Source

_SECRETS = "secret_values."
_VARIABLE = r"(?P<escaped>\$\$\{) | \$\{(?P<name>[^{}\n]*+)\}"
_OUTSIDE = re.compile(
    rf"(?P<comment>--[^\n]*+|/\*(?!\+)(?s:.*?)\*/) | (?P<quote>['`]) | {_VARIABLE}", re.VERBOSE
)
_INSIDE = {
    quote: re.compile(rf"(?P<comment>(?!)) | (?P<quote>{quote}) | {_VARIABLE}", re.VERBOSE)
    for quote in "'`"
}
_ENV_LINE = re.compile(r"(?:export\s+)?([\w.-]+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|(.*?))\s*")


def fill(
    script: str, values: Mapping[str, str], secrets: Mapping[str, str] | None = None, name: str = ""
) -> Source:
    """Fill in the variables of a script, or tell of all that are not defined.

    A value inside a text or a backticked name is quoted for it, so it cannot end it early.
    `$${` stays `${`. Comments are left alone.
    """
    written = Source(script, name)
    known = {**values, **{_SECRETS + key: value for key, value in (secrets or {}).items()}}
    pieces: list[str] = []
    filled: list[Filled] = []
    problems: list[SqlError] = []
    at = length = 0
    quote = ""
    position = 0
    while match := (_INSIDE[quote] if quote else _OUTSIDE).search(script, position):
        position = match.end()
        if match["quote"]:
            quote = "" if quote else match["quote"]
            continue
        if match["comment"]:
            continue
        key = (match["name"] or "").strip()
        if not match["escaped"] and key not in known:
            place = Place(written, match.start(), match.end())
            problems.append(_undefined(key, place, known))
            continue
        value = "${" if match["escaped"] else known[key]
        text = value.replace(quote, quote * 2) if quote else value
        pieces += [script[at : match.start()], text]
        length += match.start() - at
        secret = value if key.startswith(_SECRETS) else ""
        filled.append(Filled(length, length + len(text), *match.span(), secret))
        length += len(text)
        at = match.end()
    if problems:
        raise SqlError.together(problems)
    return Source("".join([*pieces, script[at:]]), name, script, filled)


def _undefined(key: str, place: Place, known: Mapping[str, str]) -> SqlError:
    define = "Define it with --var, in an .env file or in the environment."
    if key.startswith(_SECRETS):
        define = "Add it to the secret values the job is given."
    return SqlError(f"variable '{key}' is not defined", place, did_you_mean(key, known) or define)


def read_env_file(path: Path) -> dict[str, str]:
    """The `NAME=value` lines of an .env file; quotes around a value are taken off."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _ENV_LINE.fullmatch(line)
        if match is None:
            raise SqlError(f"{path.name}, line {number}: expected NAME=value")
        found[match[1]] = next(value for value in match.groups()[1:] if value is not None)
    return found
