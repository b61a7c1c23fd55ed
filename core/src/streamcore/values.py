"""From the text of an option to its value and back, for each type an option may have."""

from __future__ import annotations

import enum
import ipaddress
import json
import re
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Secret:
    """A text that never shows itself; only `reveal()` gives it away."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text, for the one call that needs it."""
        return self._text

    def __repr__(self) -> str:
        return "'***'"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __getstate__(self) -> tuple[str]:
        return (self._text,)

    def __setstate__(self, state: tuple[str]) -> None:
        self._text = state[0]


class ByteSize(int):
    """A number of bytes, written as `64 kb` or `5mb`."""


SENSITIVE = re.compile(
    r"password|passwd|passphrase|secret|token|credential|service-key|jaas|http-headers|auth-params"
    r"|(?:api|access|private)[.\-_ ]?key|basic[.\-]auth|user[.\-_]info|key\.pem|keystore\.key$",
    re.IGNORECASE,
)
_HARMLESS = re.compile(  # what tells where or what kind the secret is, but not the secret
    r"(location|provider|source|lifetime|url|endpoint|mechanism|arn|name|class|file|path|[.-]ms)$",
    re.I,
)
URL_LOGIN = re.compile(  # the second form is no URL, but whoever writes it has a password in it
    r"""(?<=://)(?:[^\s/?\#]*|[^\s/?\#:@'"]*:(?!\d*(?:[/?\#]|$))[^\s'"]{0,200})(?=@)"""
)
"""The `user:password` of a URL, wherever it stands in a text."""


def is_sensitive(key: str) -> bool:
    """Tell whether the value of this key must never be shown."""
    return bool(SENSITIVE.search(key)) and not _HARMLESS.search(key)


def without_logins(text: str) -> str:
    """Return a text as it may be shown: no URL in it tells who logs in, and how."""
    return URL_LOGIN.sub("***", text)


def masked(key: str, value: object) -> str:
    """Return the value as it may be shown in an error, a plan or a log."""
    hidden = isinstance(value, Secret) or is_sensitive(key)
    return "***" if hidden else without_logins(str(value))


def is_link_local(host: str) -> bool:
    """Tell whether a host is where clouds hand out credentials, however its number is written."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(host))
        except (OSError, UnicodeError, ValueError):
            return False
    return (getattr(address, "ipv4_mapped", None) or address).is_link_local


# --- numbers, truth, text ------------------------------------------------------


def _int(text: str) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        raise ValueError
    return int(text)


def _float(text: str) -> float:
    if not re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", text):
        raise ValueError
    return float(text)


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


# --- durations ------------------------------------------------------------------

_MICROS: dict[str, float] = {}
for _micros, _names in (
    (86_400_000_000, "d day days"),
    (3_600_000_000, "h hour hours"),
    (60_000_000, "m min minute minutes"),
    (1_000_000, "s sec secs second seconds"),
    (1_000, "ms milli millis millisecond milliseconds"),
    (1, "µs μs us micro micros microsecond microseconds"),
    (0.001, "ns nano nanos nanosecond nanoseconds"),
):
    _MICROS.update(dict.fromkeys(_names.split(), _micros))
_MICROS[""] = 1_000  # a bare number counts milliseconds

_ISO_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)


def parse_duration(text: str) -> timedelta:
    """Read `10 s`, `5min`, `1 d`, a bare number of milliseconds, or ISO-8601 such as `PT5M`.

    Nothing finer than a microsecond is kept.
    """
    text = text.strip()
    if match := re.fullmatch(r"([0-9]+)\s*(\w*)", text):
        return timedelta(microseconds=int(match[1]) * _MICROS[match[2].lower()])
    match = _ISO_DURATION.fullmatch(text)
    if not match or not any(match.groups()):
        raise ValueError
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    seconds = float((match[4] or "0").replace(",", "."))
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def show_duration(value: timedelta) -> str:
    """Write a duration the way users write it."""
    micros = value // timedelta(microseconds=1)
    for unit in ("d", "h", "min", "s", "ms", "µs"):
        if micros and micros % int(_MICROS[unit]) == 0:
            return f"{micros // int(_MICROS[unit])} {unit}"
    return "0 s"


# --- sizes and lists --------------------------------------------------------------

_BYTES: dict[str, int] = {}
for _power, _names in enumerate(
    ("b byte bytes", "k kb kibibytes", "m mb mebibytes", "g gb gibibytes", "t tb tebibytes")
):
    _BYTES.update(dict.fromkeys(_names.split(), 1024**_power))
_BYTES[""] = 1


def parse_size(text: str) -> ByteSize:
    """Read `1024`, `64 kb` or `5 mb`; units are powers of 1024."""
    match = re.fullmatch(r"\s*([0-9]+)\s*([a-zA-Z]*)\s*", text)
    if not match:
        raise ValueError
    return ByteSize(int(match[1]) * _BYTES[match[2].lower()])


def show_size(value: int) -> str:
    """Write a size the way users write it."""
    for unit in ("tb", "gb", "mb", "kb"):
        if value and value % _BYTES[unit] == 0:
            return f"{value // _BYTES[unit]} {unit}"
    return str(int(value))


def parse_list(text: str) -> tuple[str, ...]:
    """Read `a; b`, quoted items with doubled quotes inside, or a JSON-style `[a, b]`."""
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        return _bracketed(stripped)
    return _split(text, ";")


def _bracketed(text: str) -> tuple[str, ...]:
    try:
        items = json.loads(text)
    except ValueError:
        return _split(text[1:-1], ",")
    if not all(isinstance(item, str | int | float) for item in items):
        raise ValueError
    return tuple(str(item) for item in items)


def _split(text: str, separator: str) -> tuple[str, ...]:
    item = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[^'"SEP]+""".replace("SEP", separator)
    parts = re.findall(rf"\s*(?:({item})|({separator})|(.))", text.strip(), re.DOTALL)
    items: list[str] = []
    after = separator  # what came before the item at hand
    for word, mark, stray in parts:
        if stray or (word and after != separator):
            raise ValueError  # a quote that is not closed, or text beside a quoted item
        if word:
            items.append(_unquoted(word))
        elif after == separator and items:
            items.append("")
        after = mark
    return tuple(items)


def _unquoted(word: str) -> str:
    if word[0] in "'\"":
        return word[1:-1].replace(word[0] * 2, word[0])
    return word.strip()


# --- the table of types --------------------------------------------------------------


class Kind(Generic[T]):
    """How a type is called, how its values look, and how they are read and shown."""

    def __init__(
        self, name: str, looks: str, parse: Callable[[str], T], show: Callable[[T], str] = str
    ) -> None:
        self.name, self.looks, self.parse, self.show = name, looks, parse, show


KINDS: dict[Any, Kind[Any]] = {
    str: Kind("string", "text", str),
    Secret: Kind("secret", "text, kept secret", Secret, lambda _: "***"),
    int: Kind("int", "a whole number", _int),
    float: Kind("float", "a number", _float),
    bool: Kind("boolean", "true or false", _bool, lambda value: str(value).lower()),
    timedelta: Kind(
        "duration", "a duration such as '10 s' or '5 min'", parse_duration, show_duration
    ),
    ByteSize: Kind("size", "a size such as '64 kb' or '5 mb'", parse_size, show_size),
    tuple[str, ...]: Kind("list", "a list separated by ';'", parse_list, ";".join),
}


def choices(hint: Any) -> list[str]:
    """The texts an enum option accepts; empty for every other type."""
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [str(member.value) for member in hint]
    return []


def type_name(hint: Any) -> str:
    """The one word by which documentation calls this type."""
    if choices(hint):
        return "enum"
    if hint in KINDS:
        return KINDS[hint].name
    return str(getattr(hint, "kind", "map"))


def looks_like(hint: Any) -> str:
    """Say what a value of this type looks like; used by errors, docs and the CLI."""
    if names := choices(hint):
        return "one of " + ", ".join(names)
    if hint in KINDS:
        return KINDS[hint].looks
    if hasattr(hint, "kind"):
        return f"the name of a {hint.kind}"
    return "text"


def parse(hint: Any, text: str) -> Any:
    """Turn an option's text into its value; ValueError or KeyError if it is none."""
    if choices(hint):
        by_text = {str(member.value).lower(): member for member in hint}
        return by_text[text.strip().lower()]
    return KINDS[hint].parse(text)


def show(hint: Any, value: Any) -> str:
    """Turn a value into the text that would give it."""
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, str):
        return value
    return str(KINDS[hint].show(value)) if hint in KINDS else str(value)
