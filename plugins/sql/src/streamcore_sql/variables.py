"""`${NAME}` and `${secret_values.name}` in scripts, filled in without losing places or secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from .errors import SqlError, did_you_mean
from .monitoring.scrubbing import SECRETS
from .source import Filled, Place, Source

_PREFIX = "secret_values."
_VARIABLE = r"(?P<escaped>\$\$\{) | \$\{(?P<name>[^{}\n]*+)\}"
_OUTSIDE = re.compile(
    rf"(?P<comment>--[^\n]*+|/\*(?!\+)(?s:.*?)\*/) | (?P<quote>['`]) | {_VARIABLE}", re.VERBOSE
)
_INSIDE = {
    quote: re.compile(rf"(?P<comment>(?!)) | (?P<quote>{quote}) | {_VARIABLE}", re.VERBOSE)
    for quote in "'`"
}
_ENV_LINE = re.compile(r"(?:export\s+)?([\w.-]+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|(.*?))\s*")


class Variables:
    """What is filled in for names; what is called secret is hidden from then on."""

    def __init__(self, values: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        self._known = {**values, **{_PREFIX + key: value for key, value in secrets.items()}}

    def get(self, name: str) -> str | None:
        """A value by its name, else by the name that a shell can export; None if undefined."""
        value = self._known.get(name, self._known.get(exported(name)))
        if value is not None and is_secret(name):
            SECRETS.learn([value])
        return value

    def hint(self, name: str) -> str:
        """What to do about a name that is not defined."""
        ways, start = "with --var NAME=VALUE, with --env-file FILE", ""
        if is_secret(name):
            ways, start = "with --secrets FILE, a file of NAME=VALUE lines,", _PREFIX
        alike = [each.removeprefix(start) for each in self._known if is_secret(each) == bool(start)]
        if near := did_you_mean(name.removeprefix(start), alike):
            return near.replace("'", f"'{start}", 1)
        renamed = f" as {exported(name)}" if exported(name) != name else ""
        return f"Define it {ways} or in the environment{renamed}."


def is_secret(name: str) -> bool:
    """Whether a variable is a secret, going by its name."""
    return name.startswith(_PREFIX)


def exported(name: str) -> str:
    """The name under which a shell exports a variable: its own, or `A_B_C` for `a.b-c`."""
    return name if name.isidentifier() else re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def fill(
    script: str, values: Mapping[str, str], secrets: Mapping[str, str] | None = None, name: str = ""
) -> Source:
    """Fill in the variables of a script, or tell of all that are not defined.

    A value inside a text or a backticked name is quoted for it, so it cannot end it early.
    `$${` stays `${`. Comments are left alone.
    """
    written = Source(script, name)
    variables = Variables(values, secrets or {})
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
        value = "${" if match["escaped"] else variables.get(key)
        if value is None:
            place = Place(written, match.start(), match.end())
            trouble = f"variable '{key}' is not defined"
            problems.append(SqlError(trouble, place, variables.hint(key)))
            continue
        text = value.replace(quote, quote * 2) if quote else value
        pieces += [script[at : match.start()], text]
        length += match.start() - at
        secret = value if is_secret(key) else ""
        filled.append(Filled(length, length + len(text), *match.span(), secret))
        length += len(text)
        at = match.end()
    if problems:
        raise SqlError.together(problems)
    return Source("".join([*pieces, script[at:]]), name, script, filled)


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
