"""Declare an option once: parsing, checking, error text and docs follow from it."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from .values import show, show_duration

MISSING = dataclasses.MISSING


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

    def space(self, key: str, factory: Any) -> str:
        """Where the plugin named under `key` reads its options: 'value.format' = 'json' reads
        'value.json.*'.
        """
        stem = key + "." if self.spec.below else key[: key.rfind(".") + 1]
        own = factory.option_prefix
        return stem + (f"{factory.identifier}." if own is None else str(own))

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
        if not isinstance(value, timedelta):
            return None if value >= least else f"must be at least {_shown(least)}"
        bound = timedelta(seconds=least)
        return None if value >= bound else f"must be at least {show_duration(bound)}"

    return check


def between(least: float, most: float) -> Callable[[Any], str | None]:
    """A check for numbers with both a lower and an upper bound."""
    bounds = f"{_shown(least)} and {_shown(most)}"
    return lambda n: None if least <= n <= most else f"must be between {bounds}"


def _shown(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"


def declared(cls: type[Any]) -> Iterator[Declared]:
    """Yield every option a plugin class declares, its own before inherited ones."""
    hints = typing.get_type_hints(cls)
    own = set(inspect.get_annotations(cls))
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
