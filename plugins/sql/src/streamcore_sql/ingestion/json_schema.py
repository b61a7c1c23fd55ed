"""The JSON Schema of job files, for what is installed: editors complete and check files with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from streamcore import Connector
from streamcore.description import OptionFacts, describe
from streamcore.registry import Registry

from .model import Behavior, Converter, RouteMode, RuntimeMode
from .sinks import TYPES, KeyFormat, Strategy, ValueFormat

Schema = dict[str, Any]

_VARIABLE = {"type": "string", "pattern": r"\$\{.+\}"}
_TEXT: Schema = {"type": ["string", "number", "boolean"]}
_TYPES: dict[str, Schema] = {
    "boolean": {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}, _VARIABLE]},
    "int": {
        "anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"^[+-]?\d+$"}, _VARIABLE]
    },
    "list": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
}
_ABOVE_ZERO: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\+?0*[1-9]\d*$"},
        _VARIABLE,
    ]
}
_NAMES: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_SELECTOR = {
    "type": "string",
    "minLength": 1,
    "description": r"Tables by name or pattern: 'shop.orders', 'shop.\.*'; the dot of a pattern "
    r"is written '\.'.",
}


def job_schema(registry: Registry) -> Schema:
    """The schema of a whole file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "streamcore ingestion job",
        "type": "object",
        "required": ["source", "sink"],
        "additionalProperties": False,
        "properties": {
            "source": _end(registry, _sources(registry), _SOURCE),
            "sink": _end(registry, [t for t in TYPES if t in registry.names("connector")], _SINK),
            "route": {"type": "array", "items": _ROUTE},
            "transform": {"type": "array", "items": _TRANSFORM},
            "pipeline": _PIPELINE,
        },
    }


def _text(description: str, **more: Any) -> Schema:
    return {**_TEXT, "description": description, **more}


def _choice(kind: type[Enum], description: str, default: Enum | None = None) -> Schema:
    usual = {} if default is None else {"default": default.value}
    return {**_one_of(*(each.value for each in kind)), "description": description, **usual}


def _one_of(*values: str) -> Schema:
    """Some words, in any case; editors complete them as they are here."""
    any_case = {"type": "string", "pattern": _any_case(values)}
    return {"anyOf": [{"enum": [*values]}, any_case, _VARIABLE]}


def _any_case(values: Iterable[str]) -> str:
    def either(character: str) -> str:
        if not character.isalpha():
            return re.escape(character)
        return f"[{character.lower()}{character.upper()}]"

    return "^(" + "|".join("".join(map(either, value)) for value in values) + ")$"


def _mapping(required: Sequence[str], properties: Schema) -> Schema:
    return {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": properties,
    }


# --- source and sink ---------------------------------------------------------------------------

_SOURCE: Schema = {
    "name": _text("A name for people."),
    "tables": {
        "description": "The tables to read; all of them if left out.",
        "anyOf": [
            _SELECTOR,
            {
                "type": "array",
                "items": {
                    "anyOf": [
                        _SELECTOR,
                        _mapping(
                            ["name"],
                            {
                                "name": _SELECTOR,
                                "columns": _text("As in CREATE TABLE: id BIGINT, name STRING."),
                                "primary-keys": _NAMES,
                            },
                        ),
                    ]
                },
            },
        ],
    },
}
_SINK: Schema = {
    "name": _text("A name for people."),
    "sink.add-tableId-to-header-enabled": _TYPES["boolean"],
    "sink.custom-header": _text("Headers of every message, as name:value,name:value."),
    "sink.tableId-to-topic.mapping": _text("Topics of tables, as table:topic;table:topic."),
    "include.schema.changes": _NAMES,
    "exclude.schema.changes": _NAMES,
    "topic": _text("One topic for all tables; else each has its own."),
    "partition.strategy": _choice(Strategy, "Where rows go.", Strategy.ALL_TO_ZERO),
    "value.format": _one_of("json", *(each.value for each in ValueFormat)),
    "key.format": _one_of(*(each.value for each in KeyFormat)),
    "debezium-json.include-schema.enabled": _TYPES["boolean"],
}
_PARTS = ("", "key.", "value.")
_MADE_HERE = {"format", "topic", "key.format", "value.format"}
"""Options that connectors require of tables, and that a job gives its sink by itself."""


def _sources(registry: Registry) -> list[str]:
    return [
        name
        for name in registry.names("connector")
        if issubclass(found := registry.find("connector", name), Connector)
        and found.can("stream_reader")
    ]


def _end(registry: Registry, types: Sequence[str], own: Schema) -> Schema:
    """The source or the sink: which keys there are depends on `type`."""
    formats = registry.names("format")
    written = "|".join(map(re.escape, formats))
    known: Schema = {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"anyOf": [{"enum": [*types]}, _VARIABLE], "description": "The connector."}
        },
        "allOf": [],
    }
    for name in types:
        facts = describe(registry, "connector", name).options
        properties = {"type": {"const": name}, **_options(facts), **own}
        required = ["type"]
        for each in facts:
            made = own is _SINK and each.key in _MADE_HERE
            if each.required and not made and not each.synonyms and "." not in each.key:
                required.append(each.key)
        starts = [re.escape(each.key[:-1]) for each in facts if each.type == "map"]
        patterns = {f"^({'|'.join([*starts, 'nothing'])}).": _TEXT}
        patterns[rf"^((key|value)\.)?({written})\.".replace(r"\-", "-")] = _TEXT
        maps = [each.key.rstrip("*") for each in facts if each.type == "map"]
        dotted = [*properties, *maps, *(f"{start}{f}." for f in formats for start in _PARTS)]
        nested = sorted(_beginnings(dotted) - properties.keys())
        properties |= {key: {"type": "object"} for key in nested}
        known["allOf"].append(
            {
                "if": {"properties": {"type": {"const": name}}},
                "then": {
                    "properties": properties,
                    "required": required,
                    "patternProperties": patterns,
                    "additionalProperties": False,
                },
            }
        )
    return known


def _beginnings(keys: Iterable[str]) -> set[str]:
    """What may stand before nested parts of keys: `a` and `a.b` of `a.b.c`."""
    parts = [key.split(".") for key in keys]
    return {".".join(each[:end]) for each in parts for end in range(1, len(each))}


def _options(facts: Iterable[OptionFacts]) -> Schema:
    found: Schema = {}
    for each in facts:
        if each.type == "map":
            continue
        schema = dict(_TYPES.get(each.type, _TEXT))
        if each.values:
            schema = _one_of(*each.values)
        schema["description"] = each.description
        if each.default:
            schema["default"] = each.default
        for key in (each.key, *each.synonyms):
            found[key] = schema
        for key in each.deprecated:
            found[key] = {**schema, "deprecated": True}
    return found


# --- rules and settings --------------------------------------------------------------------------

_ROUTE = _mapping(
    ["source-table", "sink-table"],
    {
        "source-table": _SELECTOR,
        "sink-table": _text("The name at the sink; '$1' is what the first group captured."),
        "replace-symbol": _text("Stands in 'sink-table' for the name of the source table."),
        "description": _text("For people."),
    },
)
_TRANSFORM = _mapping(
    ["source-table"],
    {
        "source-table": _SELECTOR,
        "projection": _text(r"Columns and expressions, as in SELECT; '\*' are all columns."),
        "filter": _text("Which rows to keep, as in WHERE."),
        "primary-keys": _NAMES,
        "partition-keys": _NAMES,
        "table-options": _text("Without effect: topics are not created here."),
        "table-options.delimiter": _text("Without effect."),
        "converter-after-transform": _choice(Converter, "SOFT_DELETE writes deletes as rows."),
        "description": _text("For people."),
    },
)
_PIPELINE = _mapping(
    [],
    {
        "name": _text("The job's name; its checkpoint is kept under it."),
        "parallelism": {**_ABOVE_ZERO, "description": "How many tasks write, at most."},
        "local-time-zone": _text("The zone of TIMESTAMP_LTZ in expressions."),
        "execution.runtime-mode": _choice(
            RuntimeMode, "BATCH ends with what is there now.", RuntimeMode.STREAMING
        ),
        "route-mode": _choice(RouteMode, "Every route, or the first.", RouteMode.ALL_MATCH),
        "schema.change.behavior": _choice(
            Behavior, "What to do with new columns and types.", Behavior.LENIENT
        ),
        "user-defined-function": {
            "type": "array",
            "items": _mapping(
                ["name", "classpath"],
                {
                    "name": _text("How expressions call it."),
                    "classpath": _text("The Python function, as module.function."),
                },
            ),
        },
        **{
            key: _text("Accepted without effect.")
            for key in (
                "schema-operator.rpc-timeout",
                "operator.uid.prefix",
                "sink.partitioning.strategy",
                "transform.decimal.precision.mode",
            )
        },
    },
)
