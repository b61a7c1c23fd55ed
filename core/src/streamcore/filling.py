"""From the options of a table to a configured plugin, or one error that lists every problem."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .errors import OptionError, OptionWarning, PluginError, Problem, StreamcoreError
from .options import MISSING, Declared, Spec, declared
from .values import Secret, is_sensitive, looks_like, masked, parse, without_logins

Given = Mapping[str, str | Secret | bool | int | float]
Find = Callable[[str, str], type[Any]]


def hidden(given: Given) -> dict[str, str | Secret]:
    """The same options as texts, with every value that must not be shown wrapped as a secret."""
    texts = {key: _text(value) for key, value in given.items()}
    return {
        key: Secret(value) if isinstance(value, str) and is_sensitive(key) else value
        for key, value in texts.items()
    }


def _text(value: str | Secret | bool | int | float) -> str | Secret:
    """Python's own values as they are written in SQL, as Spark's options take them, too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, (str, Secret)) else str(value)


def build(cls: type[Any], given: Given, find: Find) -> Any:
    """Build `cls` from a table's options, or raise one error listing every problem."""
    given = hidden(given)  # rebound: not even a traceback that prints variables may show a secret
    filling = _Filling(given, find)
    plugin = filling.fill(cls, "")
    unknown = filling.unknown()
    if filling.problems or unknown:
        hint = f"Run 'streamcore describe {cls.kind} {cls.identifier}' to see every option."
        if unknown:
            hint = f"Supported options: {', '.join(filling.supported())}\n{hint}"
        subject = f"{cls.kind} '{cls.identifier}'"
        raise OptionError(subject, filling.problems + unknown, hint) from filling.cause
    return plugin


class _Filling:
    """One walk over a plugin class and the plugins nested in it."""

    def __init__(self, given: Mapping[str, str | Secret], find: Find) -> None:
        # Spark lower-cases option keys and some of ours are camel case, so case never decides.
        self.given = {key.lower(): (key, value) for key, value in given.items()}
        self.find = find
        self.known: set[str] = set()
        self.deprecated: set[str] = set()
        self.used: set[str] = set()
        self.problems: list[Problem] = []
        self.cause: Exception | None = None
        for key in given:
            twin = self.given[key.lower()][0]
            if twin != key:
                self.problems.append(Problem(key, f"given twice, also as '{twin}'; set one"))

    def fill(self, cls: type[Any], prefix: str) -> Any:
        before = len(self.problems)
        values, unread = {}, set()
        for each in declared(cls):
            so_far = len(self.problems)
            value = self._map(each, prefix) if each.is_map else self._single(each, prefix)
            if value is MISSING or len(self.problems) > so_far:
                unread.add(each.name)
            else:
                values[each.name] = value
        if unread:
            self._note(prefix, _complaints_without(cls, values, unread))
            return None
        try:
            plugin = cls(**values)
            complaints = list(plugin.problems())
        except Exception as error:  # whatever a plugin's own code does, the user gets one report
            self._failed(cls, prefix, error)
            return None
        self._note(prefix, complaints)
        return plugin if len(self.problems) == before else None

    def _note(self, prefix: str, complaints: Iterable[Problem | str]) -> None:
        for complaint in complaints:
            key, trouble = complaint if isinstance(complaint, Problem) else ("", complaint)
            self.problems.append(Problem(prefix + key if key else "", without_logins(trouble)))

    def unknown(self) -> list[Problem]:
        """Complain about every key nobody asked for."""
        canonical = {key.lower(): key for key in self.known}
        found = []
        for lower in sorted(self.given.keys() - self.used):
            close = difflib.get_close_matches(lower, canonical, n=1)
            hint = f"; did you mean '{canonical[close[0]]}'?" if close else ""
            found.append(Problem(self.given[lower][0], f"unknown option{hint}"))
        return found

    def supported(self) -> list[str]:
        """Every key that would have been read, the deprecated ones marked."""
        marked = {key: f"{key} (deprecated)" for key in self.deprecated - self.known}
        return [marked.get(key, key) for key in sorted(self.known | self.deprecated)]

    def _failed(self, cls: type[Any], prefix: str, error: Exception) -> None:
        said = str(error)
        if not isinstance(error, StreamcoreError):
            said = f"{type(error).__name__}: {error}"
        shown = self._without_secrets(said)
        chain = "\n".join(map(str, _chain(error)))
        self.cause = error if self._without_secrets(chain) == chain else None
        key = f"{prefix}*" if prefix else ""
        what = f"{cls.kind} '{cls.identifier}' could not be set up: {shown}"
        self.problems.append(Problem(key, what))

    def _without_secrets(self, text: str) -> str:
        for _, value in self.given.values():
            if isinstance(value, Secret) and value:
                text = text.replace(value.reveal(), "***")
        return without_logins(text)

    def _map(self, each: Declared, prefix: str) -> dict[str, str | Secret]:
        stem = prefix + each.spec.key[:-1]
        self.known.add(stem + "*")
        collected: dict[str, str | Secret] = {}
        for lower, (key, value) in self.given.items():
            if lower.startswith(stem.lower()) and len(lower) > len(stem):
                self.used.add(lower)
                collected[key[len(stem) :]] = value
        return collected

    def _single(self, each: Declared, prefix: str) -> Any:
        spec = each.spec
        self.known.update(prefix + key for key in (spec.key, *spec.also))
        self.deprecated.update(prefix + key for key in spec.was)
        present = [key for key in spec.keys if (prefix + key).lower() in self.given]
        self.used.update((prefix + key).lower() for key in present)
        self._complain_about_spelling(spec, present, prefix)
        if not present:
            return self._absent(each, prefix)
        key = prefix + present[0]
        given = self.given[key.lower()][1]
        read = self._nested if each.names_a_plugin else self._value
        return read(each, key, given)

    def _absent(self, each: Declared, prefix: str) -> Any:
        spec = each.spec
        if each.required:
            elsewhere = "".join(f", or as '{prefix}{key}'" for key in spec.also)
            trouble = f"required but missing{elsewhere} ({spec.doc.rstrip('.')})"
            self.problems.append(Problem(prefix + spec.key, trouble))
            return MISSING
        if each.names_a_plugin and each.default is not None:
            return self._nested(each, prefix + spec.key, each.default)
        return each.default

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
        if each.hint is Secret and isinstance(given, str):
            given = Secret(given)
        value: Any = given
        shown = masked(key, given)
        try:
            if each.hint is not Secret:
                value = parse(each.hint, given.reveal() if isinstance(given, Secret) else given)
        except (ValueError, KeyError, OverflowError, RecursionError):
            self.problems.append(Problem(key, f"'{shown}' is not {looks_like(each.hint)}"))
            return MISSING
        if each.spec.check and (complaint := each.spec.check(value)):
            self.problems.append(Problem(key, f"'{shown}' {self._without_secrets(complaint)}"))
            return MISSING
        return value

    def _nested(self, each: Declared, key: str, identifier: str | Secret) -> Any:
        try:
            name = identifier.reveal() if isinstance(identifier, Secret) else identifier
            factory = self.find(each.hint.kind, name)
        except PluginError as error:
            lines = self._without_secrets(str(error)).splitlines()
            sentences = [line if line[-1] in ".?" else line + "." for line in lines]
            self.problems.append(Problem(key, " ".join(sentences).rstrip(".")))
            return MISSING
        return self.fill(factory, each.space(key, factory))


def _chain(error: BaseException | None) -> Iterator[object]:
    """What a traceback of an error would show: it, its notes, and all that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        yield from getattr(error, "__notes__", ())
        error = error.__cause__ or error.__context__


def _complaints_without(
    cls: type[Any], values: Mapping[str, Any], unread: set[str]
) -> list[Problem | str]:
    """What a plugin says about its options together, up to where it asks for one that is wrong."""

    def read(self: Any, name: str) -> Any:
        if name in unread:
            raise LookupError(name)
        return object.__getattribute__(self, name)

    kept = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__getattribute__": read}
    plugin: Any = object.__new__(type(cls.__name__, (cls,), kept))
    for name, value in values.items():
        object.__setattr__(plugin, name, value)
    found: list[Problem | str] = []
    try:
        for complaint in plugin.problems():
            found.append(complaint)
    except Exception:  # the rest has to wait until the wrong option is right
        return found
    return found
