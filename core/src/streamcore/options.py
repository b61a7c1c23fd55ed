"""Declare an option once: parsing, checking, error text and docs follow from it."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .errors import OptionError, OptionWarning, PluginError, Problem
from .values import Secret, is_sensitive, looks_like, masked, parse, show

MISSING = dataclasses.MISSING
Find = Callable[[str, str], type[Any]]


@dataclasses.dataclass(frozen=True)
class Spec:
    """What `option()` records about one field."""

    key: str
    doc: str
    check: Callable[[Any], str | None] | None = None
    also: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    was: tuple[str, ...] = ()
    below: bool = False
    example: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that can carry the value, the preferred one first."""
        return (self.key, *self.also, *self.fallback, *self.was)


@dataclasses.dataclass(frozen=True)
class Declared:
    """One declared option: its field, its type, its spec and its default."""

    name: str
    hint: Any
    spec: Spec
    default: Any
    optional: bool

    @property
    def required(self) -> bool:
        return self.default is MISSING

    @property
    def is_map(self) -> bool:
        return self.spec.key.endswith("*")

    @property
    def names_a_plugin(self) -> bool:
        return hasattr(self.hint, "kind")

    def default_text(self) -> str:
        """The default as a user would write it; empty when there is none."""
        if self.default is MISSING or self.default in (None, ()) or self.is_map:
            return ""
        return show(self.hint, self.default)


def option(
    key: str,
    doc: str,
    *,
    default: Any = MISSING,
    check: Callable[[Any], str | None] | None = None,
    also: tuple[str, ...] = (),
    fallback: tuple[str, ...] = (),
    was: tuple[str, ...] = (),
    below: bool = False,
    example: str = "",
) -> Any:
    """Declare a field as an option.

    `key` is what users write; a trailing `*` collects every key under a prefix. Without `default`
    the option is required. `check` returns a complaint, or None when the value is fine. `also` are
    synonyms, `fallback` keys are read when the main one is absent, `was` are deprecated keys that
    still work with a warning. An option whose type is a plugin kind reads the plugin's own options
    beside itself ('format' = 'json' reads 'json.*'), or, with `below`, under its own key.
    """
    spec = Spec(key, " ".join(doc.split()), check, also, fallback, was, below, example)
    if key.endswith("*") and default is MISSING:
        return dataclasses.field(default_factory=dict, metadata={"option": spec})
    return dataclasses.field(default=default, metadata={"option": spec})


def at_least(least: float) -> Callable[[Any], str | None]:
    """A check for numbers and durations; durations count in seconds."""

    def check(value: Any) -> str | None:
        number = value.total_seconds() if hasattr(value, "total_seconds") else value
        return None if number >= least else f"must be at least {least:g}"

    return check


def between(least: float, most: float) -> Callable[[Any], str | None]:
    """A check for numbers with both a lower and an upper bound."""
    return lambda n: None if least <= n <= most else f"must be between {least:g} and {most:g}"


def declared(cls: type[Any]) -> Iterator[Declared]:
    """Yield every option a plugin class declares, its own before inherited ones."""
    hints = typing.get_type_hints(cls)
    own = set(cls.__dict__.get("__annotations__", {}))
    fields = [f for f in dataclasses.fields(cls) if "option" in f.metadata]
    for field in sorted(fields, key=lambda f: f.name not in own):
        hint, optional = _bare(hints[field.name])
        default = {} if field.default_factory is not MISSING else field.default
        yield Declared(field.name, hint, field.metadata["option"], default, optional)


def _bare(hint: Any) -> tuple[Any, bool]:
    """Strip `| None`: an absent option is its default, never an empty string."""
    if isinstance(hint, types.UnionType) and type(None) in hint.__args__:
        return next(arm for arm in hint.__args__ if arm is not type(None)), True
    return hint, False


# --- from options to a configured plugin ------------------------------------------


def build(cls: type[Any], given: Mapping[str, str | Secret], find: Find) -> Any:
    """Build `cls` from a table's options, or raise one error listing every problem."""
    filling = _Filling(given, find)
    plugin = filling.fill(cls, "")
    problems = filling.problems + filling.unknown()
    if problems:
        hint = f"Run 'streamcore describe {cls.kind} {cls.identifier}' to see every option."
        raise OptionError(f"{cls.kind} '{cls.identifier}'", problems, hint)
    return plugin


class _Filling:
    """One walk over a plugin class and the plugins nested in it."""

    def __init__(self, given: Mapping[str, str | Secret], find: Find) -> None:
        # Spark lower-cases option keys and some of ours are camel case, so case never decides.
        self.given = {key.lower(): (key, value) for key, value in given.items()}
        self.find = find
        self.known: set[str] = set()
        self.used: set[str] = set()
        self.problems: list[Problem] = []

    def fill(self, cls: type[Any], prefix: str) -> Any:
        before = len(self.problems)
        values = {}
        options = list(declared(cls))
        for each in sorted(options, key=lambda d: d.is_map):  # named keys first, maps take the rest
            value = self._map(each, prefix) if each.is_map else self._single(each, prefix)
            if value is not MISSING:
                values[each.name] = value
        if len(self.problems) > before:
            return None
        plugin = cls(**values)
        for problem in plugin.problems():
            key, trouble = problem if isinstance(problem, Problem) else ("", problem)
            self.problems.append(Problem(prefix + key if key else "", trouble))
        return plugin if len(self.problems) == before else None

    def unknown(self) -> list[Problem]:
        """Complain about every key nobody asked for."""
        found = []
        for lower in sorted(self.given.keys() - self.used):
            key = self.given[lower][0]
            close = difflib.get_close_matches(lower, [k.lower() for k in self.known], n=1)
            canonical = next((k for k in self.known if close and k.lower() == close[0]), None)
            hint = f"; did you mean '{canonical}'?" if canonical else ""
            found.append(Problem(key, f"unknown option{hint}"))
        if found:
            names = ", ".join(sorted(self.known))
            found.append(Problem("", f"supported options: {names}"))
        return found

    def _map(self, each: Declared, prefix: str) -> dict[str, str | Secret]:
        stem = prefix + each.spec.key[:-1]
        self.known.add(stem + "*")
        collected: dict[str, str | Secret] = {}
        for lower, (key, value) in self.given.items():
            if lower.startswith(stem.lower()) and len(lower) > len(stem):
                self.used.add(lower)
                hide = isinstance(value, str) and is_sensitive(key)
                collected[key[len(stem) :]] = Secret(str(value)) if hide else value
        return collected

    def _single(self, each: Declared, prefix: str) -> Any:
        spec = each.spec
        self.known.update(prefix + key for key in (spec.key, *spec.also))
        present = [key for key in spec.keys if (prefix + key).lower() in self.given]
        self.used.update((prefix + key).lower() for key in present)
        key = prefix + (present[0] if present else spec.key)
        self._complain_about_spelling(spec, present, prefix)
        if not present:
            if each.required:
                self.problems.append(Problem(key, f"required but missing ({spec.doc.rstrip('.')})"))
                return MISSING
            if each.names_a_plugin and each.default is not None:
                return self._nested(each, prefix + spec.key, each.default)
            return each.default
        text = self.given[key.lower()][1]
        if each.names_a_plugin:
            return self._nested(each, key, text.reveal() if isinstance(text, Secret) else text)
        return self._value(each, key, text)

    def _complain_about_spelling(self, spec: Spec, present: list[str], prefix: str) -> None:
        twins = [key for key in present if key == spec.key or key in spec.also]
        if len({self.given[(prefix + key).lower()][1] for key in twins}) > 1:
            names = " and ".join(f"'{prefix}{key}'" for key in twins)
            self.problems.append(Problem(prefix + spec.key, f"{names} mean the same; set one"))
        for key in present:
            if key in spec.was:
                warnings.warn(
                    f"'{prefix}{key}' is deprecated; write '{prefix}{spec.key}'",
                    OptionWarning,
                    stacklevel=6,
                )

    def _value(self, each: Declared, key: str, given: str | Secret) -> Any:
        text = given.reveal() if isinstance(given, Secret) else given
        try:
            value = parse(each.hint, text)
        except (ValueError, KeyError, OverflowError):
            secret = each.hint is Secret or isinstance(given, Secret)
            shown = "***" if secret else masked(key, text)
            self.problems.append(Problem(key, f"'{shown}' is not {looks_like(each.hint)}"))
            return MISSING
        if each.spec.check and (complaint := each.spec.check(value)):
            self.problems.append(Problem(key, f"'{masked(key, text)}' {complaint}"))
            return MISSING
        return value

    def _nested(self, each: Declared, key: str, identifier: str) -> Any:
        try:
            factory = self.find(each.hint.kind, identifier)
        except PluginError as error:
            self.problems.append(Problem(key, " ".join(str(error).splitlines())))
            return MISSING
        # 'value.format' = 'json' reads its options from 'value.json.*'
        stem = key + "." if each.spec.below else key[: key.rfind(".") + 1]
        own = factory.option_prefix
        return self.fill(factory, stem + (f"{factory.identifier}." if own is None else own))
