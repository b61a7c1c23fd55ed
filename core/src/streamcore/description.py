"""Everything that can be said about a plugin, gathered from its class: for people and for tools."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .api import Connector, Format, Partitioner, Plugin, RecordFormat
from .errors import StreamcoreError
from .examples import example_options, example_table, holder
from .options import Declared, declared
from .registry import Registry
from .table import INSERT_ONLY, MetadataKey
from .values import Secret, choices, looks_like, type_name


@dataclass(frozen=True)
class OptionFacts:
    """One option as documentation shows it."""

    key: str
    type: str
    required: bool
    default: str
    description: str
    expects: str
    values: tuple[str, ...]
    synonyms: tuple[str, ...]
    fallback: tuple[str, ...]
    deprecated: tuple[str, ...]
    secret: bool


@dataclass(frozen=True)
class MetadataFacts:
    """One metadata column as documentation shows it."""

    key: str
    type: str
    writable: bool
    description: str


@dataclass(frozen=True)
class Description:
    """One plugin as documentation shows it."""

    kind: str
    identifier: str
    distribution: str
    version: str
    description: str
    capabilities: Mapping[str, bool | str]
    options: tuple[OptionFacts, ...]
    metadata: tuple[MetadataFacts, ...]
    example: str

    @property
    def summary(self) -> str:
        return " ".join(self.description.partition("\n\n")[0].split())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(registry: Registry, kind: str, identifier: str) -> Description:
    """Describe the active plugin of this name."""
    cls: type[Plugin] = registry.find(kind, identifier)
    claim = registry.active.get((cls.kind, cls.identifier))
    space = _space(cls, registry)
    return Description(
        cls.kind,
        cls.identifier,
        claim.distribution if claim else "",
        claim.version if claim else "",
        inspect.cleandoc(cls.__doc__ or ""),
        _capabilities(cls, registry),
        tuple(_option_facts(each, space) for each in declared(cls)),
        tuple(
            MetadataFacts(key, facts.type, facts.writable, facts.doc)
            for key, facts in _metadata(cls, registry).items()
        ),
        example_table(cls, registry),
    )


def _space(cls: type[Plugin], registry: Registry) -> str:
    """What stands before the keys of a plugin that a connector names."""
    if issubclass(cls, Connector):
        return ""
    if found := holder(cls, registry):
        return found[1].space(found[1].spec.key, cls)
    return f"{cls.identifier}." if cls.option_prefix is None else cls.option_prefix


def _option_facts(each: Declared, prefix: str) -> OptionFacts:
    spec = each.spec
    return OptionFacts(
        key=prefix + spec.key,
        type="map" if each.is_map else type_name(each.hint),
        required=each.required,
        default=each.default_text(),
        description=spec.doc,
        expects="any keys with this prefix" if each.is_map else looks_like(each.hint),
        values=tuple(choices(each.hint)),
        synonyms=tuple(prefix + key for key in spec.also),
        fallback=tuple(prefix + key for key in spec.fallback),
        deprecated=tuple(prefix + key for key in spec.was),
        secret=each.hint is Secret,
    )


def _metadata(cls: type[Plugin], registry: Registry) -> Mapping[str, MetadataKey]:
    if issubclass(cls, Format):
        return cls.metadata_keys
    example = _example(cls, registry, {})
    return example.metadata() if isinstance(example, Connector) else {}


def _example(cls: type[Plugin], registry: Registry, changed: Mapping[str, str]) -> Plugin | None:
    """The plugin as its own example configures it; None if the example needs what is missing."""
    try:
        options = {**example_options(cls, registry), **changed}
        made: Plugin = registry.build(cls.kind, cls.identifier, options)
    except StreamcoreError:
        return None
    return made


def _capabilities(cls: type[Plugin], registry: Registry) -> dict[str, bool | str]:
    if issubclass(cls, Connector):
        return _connector_capabilities(cls, registry)
    if issubclass(cls, Format):
        return {
            "reads": _overrides(cls, "decoder", "decode_record"),
            "writes": _overrides(cls, "encoder", "encode_record"),
            "rows": "changelog" if cls.changelog else "insert-only",
        }
    if issubclass(cls, Partitioner):
        return {
            "partition numbers": _overrides(cls, "assign", "choose"),
            "partition keys": _overrides(cls, "assign_keys", "choose_key"),
        }
    return {}


def _connector_capabilities(cls: type[Connector], registry: Registry) -> dict[str, bool | str]:
    able: dict[str, bool | str] = {
        "batch reads": cls.can("reader"),
        "streaming reads": cls.can("stream_reader"),
        "batch writes": cls.can("writer"),
        "streaming writes": cls.can("stream_writer"),
    }
    plain = _example(cls, registry, {})
    if isinstance(plain, Connector):
        changing = _example(cls, registry, _changelog_format(cls, registry))
        other = changing if isinstance(changing, Connector) else plain
        if able["batch reads"] or able["streaming reads"]:
            able["rows read"] = _rows(plain.produces(), other.produces())
        if able["batch writes"] or able["streaming writes"]:
            able["rows written"] = _rows(plain.accepts(), other.accepts())
    return able


def _changelog_format(cls: type[Connector], registry: Registry) -> dict[str, str]:
    formats = [name for name in registry.names("format") if registry.find("format", name).changelog]
    keys = [each.spec.key for each in declared(cls) if each.required and each.hint is Format]
    return {key: formats[0] for key in keys if formats}


def _rows(plain: frozenset[str], with_changelog_format: frozenset[str]) -> str:
    if plain != INSERT_ONLY:
        return "changelog"
    if with_changelog_format != INSERT_ONLY:
        return "insert-only, or changelog if the format is one"
    return "insert-only"


def _overrides(cls: type[Plugin], *names: str) -> bool:
    """Whether any of these methods is the plugin's own rather than one of ours."""
    ours = (Format, RecordFormat, Partitioner)
    return any(
        getattr(cls, name, None) not in [getattr(base, name, None) for base in ours]
        for name in names
    )
