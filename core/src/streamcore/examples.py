"""A CREATE TABLE that works, made from what a plugin declares about itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from .api import Plugin
from .claims import Claim
from .errors import OptionError, Problem
from .filling import build
from .options import Declared, declared
from .registry import Registry
from .values import ByteSize, Secret, choices

_ANY = {
    int: "1",
    float: "1.0",
    bool: "true",
    timedelta: "10 s",
    ByteSize: "1 mb",
    Secret: "...",
}
_FIRST_CHOICE = ("json", "kafka", "default", "auto")


def example_options(cls: type[Plugin], registry: Registry) -> dict[str, str]:
    """Options that work: the required ones, and others only as far as these are not enough."""
    options = {**_required(cls, registry, ""), **cls.example_options}
    worries = _worries(cls, options, registry)
    for each in declared(cls):
        named = any(problem.key == each.spec.key for problem in worries)
        if worries and (each.spec.example or named) and not each.is_map:
            more = {**options, each.spec.key: each.spec.example or _made_up(each, registry)}
            fewer = _worries(cls, more, registry)
            if len(fewer) < len(worries):
                options, worries = more, fewer
    return options


def _worries(cls: type[Plugin], options: Mapping[str, str], registry: Registry) -> list[Problem]:
    try:
        build(cls, options, registry.find)
    except OptionError as error:
        return error.problems
    return []


def _required(cls: type[Plugin], registry: Registry, prefix: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for each in declared(cls):
        if each.required:
            key = prefix + each.spec.key
            options[key] = each.spec.example or _made_up(each, registry)
            if each.names_a_plugin:
                options |= _nested(each, key, options[key], registry)
    return options


def _made_up(each: Declared, registry: Registry) -> str:
    if each.names_a_plugin:
        names = registry.names(each.hint.kind)
        return next((name for name in _FIRST_CHOICE if name in names), names[0] if names else "...")
    if texts := choices(each.hint):
        return texts[0]
    return _ANY.get(each.hint, "my-" + each.spec.key.split(".")[-1])


def _nested(each: Declared, key: str, identifier: str, registry: Registry) -> dict[str, str]:
    claim = registry.active.get((each.hint.kind, identifier))
    if claim is None:
        return {}
    return _required(claim.factory, registry, each.space(key, claim.factory))


def holder(cls: type[Plugin], registry: Registry) -> tuple[type[Plugin], Declared] | None:
    """A connector with an option that can name this plugin: one of the same package, if any."""
    mine = registry.active.get((cls.kind, cls.identifier))

    def rank(claim: Claim) -> tuple[bool, bool, str]:
        stranger = mine is None or claim.distribution != mine.distribution
        return stranger, claim.identifier not in _FIRST_CHOICE, claim.identifier

    connectors = [claim for (kind, _), claim in registry.active.items() if kind == "connector"]
    for claim in sorted(connectors, key=rank):
        for each in declared(claim.factory):
            if each.names_a_plugin and each.hint.kind == cls.kind:
                return claim.factory, each
    return None


def example_table(cls: type[Plugin], registry: Registry) -> str:
    """A statement that creates a table with this plugin; only options, if nothing can hold it."""
    if cls.kind == "connector":
        return _statement(cls, cls.example_columns, example_options(cls, registry))
    if found := holder(cls, registry):
        connector, each = found
        return _statement(connector, cls.example_columns, _with(cls, each, connector, registry))
    return _listed({cls.kind: cls.identifier, **_required(cls, registry, f"{cls.identifier}.")})


def _with(
    cls: type[Plugin], each: Declared, connector: type[Plugin], registry: Registry
) -> dict[str, str]:
    """The connector's example, with this plugin in the place of the one it had."""
    options = example_options(connector, registry)
    key = each.spec.key
    if key in options:
        for gone in _nested(each, key, options[key], registry):
            del options[gone]
    options[key] = cls.identifier
    return options | _nested(each, key, cls.identifier, registry)


def _statement(cls: type[Plugin], columns: tuple[str, ...], options: Mapping[str, str]) -> str:
    listed = ",\n".join(f"  {column}" for column in columns)
    table = cls.identifier.replace("-", "_") + "_table"
    with_ = _listed({"connector": cls.identifier, **options})
    return f"CREATE TABLE {table} (\n{listed}\n) WITH (\n{with_}\n);"


def _listed(options: Mapping[str, str]) -> str:
    return ",\n".join(f"  {_quoted(key)} = {_quoted(text)}" for key, text in options.items())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
