"""Start timestamps: text in a Java date pattern, or seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime

DEFAULT_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"

_PARTS = {
    "yyyy": r"(?P<year>\d{4})",
    "MM": r"(?P<month>\d{1,2})",
    "M": r"(?P<month>\d{1,2})",
    "dd": r"(?P<day>\d{1,2})",
    "d": r"(?P<day>\d{1,2})",
    "HH": r"(?P<hour>\d{1,2})",
    "H": r"(?P<hour>\d{1,2})",
    "mm": r"(?P<minute>\d{1,2})",
    "m": r"(?P<minute>\d{1,2})",
    "ss": r"(?P<second>\d{1,2})",
    "s": r"(?P<second>\d{1,2})",
    "SSS": r"(?P<milli>\d{1,3})",
    "S": r"(?P<milli>\d{1,3})",
    "XXX": r"(?P<zone>Z|[+-]\d{2}:\d{2})",
    "XX": r"(?P<zone>Z|[+-]\d{4})",
    "X": r"(?P<zone>Z|[+-]\d{2})",
    "Z": r"(?P<zone>[+-]\d{4})",
    "z": r"(?P<zone>UTC|GMT|Z)",
}


def parse_timestamp(text: str, pattern: str) -> datetime:
    """Read a start timestamp; a pattern without a zone means UTC. ValueError if it is none."""
    match = re.fullmatch(compiled(pattern), text)
    if match is None:
        seconds = float(text)  # epoch seconds, with a fraction if need be
        if seconds < 0 or seconds != seconds or seconds == float("inf"):
            raise ValueError("a timestamp in seconds cannot be negative")
        return datetime.fromtimestamp(seconds, UTC)
    parts = match.groupdict()
    numbers = {name: int(parts.get(name) or default) for name, default in _DEFAULTS.items()}
    milli = int(parts.get("milli") or 0)
    moment = datetime(**numbers, microsecond=milli * 1000, tzinfo=UTC)
    return datetime.fromtimestamp(moment.timestamp() - _offset(parts.get("zone") or "Z"), UTC)


_DEFAULTS = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}


def compiled(pattern: str) -> str:
    """The regular expression of a Java date pattern; ValueError for letters it does not know."""
    out = []
    seen: set[str] = set()
    tokens = list(re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']", pattern))
    if "".join(token[0] for token in tokens) != pattern:
        raise ValueError(f'"{pattern}" has a quote that is not closed')
    for token in tokens:
        if token[2]:
            if token[0] not in _PARTS:
                raise ValueError(
                    f"'{token[0]}' is not a known part of a date pattern; known are "
                    f"{', '.join(_PARTS)}"
                )
            field = _PARTS[token[0]].partition(">")[0]
            if field in seen:
                raise ValueError(f"'{token[0]}' repeats another part of the date pattern")
            seen.add(field)
            out.append(_PARTS[token[0]])
        elif token[1] is None:
            out.append(re.escape(token[0]))
        else:  # text in quotes; two quotes are one
            out.append(re.escape(token[1].replace("''", "'") or "'"))
    return "".join(out)


def _offset(zone: str) -> int:
    digits = zone.replace(":", "")[1:]
    if not digits.isdigit():
        return 0
    seconds = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60
    return -seconds if zone[0] == "-" else seconds
