"""Finds plugins by entry point and settles who provides what: one active factory per identifier."""

from __future__ import annotations

import difflib
import functools
import importlib
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution, entry_points
from typing import Any

import pluggy
from packaging.requirements import InvalidRequirement, Requirement

from . import hookspecs, options
from .api import Connector, CredentialProvider, Format, Partitioner, Plugin
from .errors import ClashWarning, PluginError
from .values import Secret

GROUP = "streamcore"
IMPORT_SECONDS = 5.0

HOOKS: Mapping[str, type[Any] | None] = {
    "register_connectors": Connector,
    "register_formats": Format,
    "register_partitioners": Partitioner,
    "register_credentials": CredentialProvider,
    "register_commands": None,  # click commands, which are objects and not classes
}

_OWNED = {
    "streamcore": {"partitioner": "default fixed round-robin"},
    "streamcore-formats": {
        "format": "raw csv json avro avro-confluent protobuf debezium-json canal-json maxwell-json "
        "ogg-json debezium-avro-confluent"
    },
    "streamcore-kafka": {"connector": "kafka"},
    "streamcore-upsert-kafka": {"connector": "upsert-kafka"},
    "streamcore-kinesis": {
        "connector": "kinesis kinesis-legacy",
        "partitioner": "random",
        "credentials": "auto basic env-var sys-prop profile assume-role web-identity-token custom",
    },
    "streamcore-sql": {"connector": "datagen print blackhole", "command": "run sql check"},
}
OWNERS = {
    (kind, identifier): owner
    for owner, kinds in _OWNED.items()
    for kind, identifiers in kinds.items()
    for identifier in identifiers.split()
}
"""Who a name belongs to: installing a stranger never changes what an existing table means."""


@dataclass(frozen=True)
class Provider:
    """An entry point before it is loaded."""

    distribution: str
    version: str
    name: str
    load: Callable[[], Any]
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A row of `list-plugins`: what a distribution claims to provide, and what became of it."""

    kind: str
    identifier: str
    status: str
    distribution: str
    version: str
    reason: str = ""
    factory: Any = None

    @property
    def source(self) -> str:
        return f"{self.distribution} {self.version}"


class Registry:
    """Every claim of every provider, each settled to one of five states."""

    def __init__(
        self,
        providers: Iterable[Provider],
        *,
        prefer: Iterable[str] = (),
        allow: Iterable[str] | None = None,
        strict: bool = False,
        core_version: str = "",
    ) -> None:
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._allow = None if allow is None else {_normal(name) for name in allow}
        self._core_version = core_version
        found = [claim for provider in providers for claim in self._claims(provider)]
        self.claims = _settle(found, [_normal(name) for name in prefer])
        self.active = {(c.kind, c.identifier): c for c in self.claims if c.status == "active"}
        self._report_clashes(strict)

    def find(self, kind: str, identifier: str) -> Any:
        """Return the active factory, or say what to install, repair or type instead."""
        for name in (identifier, identifier.strip().lower().replace("_", "-")):
            if claim := self.active.get((kind, name)):
                return claim.factory
        wanted = next((base for base in HOOKS.values() if base and base.kind == kind), None)
        if wanted and wanted.importable and re.fullmatch(r"\w+(\.\w+)*[.:]\w+", identifier):
            return self._imported(wanted, identifier)
        raise PluginError(self._missing(kind, identifier))

    def build(self, kind: str, identifier: str, given: Mapping[str, str | Secret]) -> Any:
        """Return the plugin `identifier`, configured from a table's options."""
        return options.build(self.find(kind, identifier), given, self.find)

    def names(self, kind: str) -> list[str]:
        """The active identifiers of one kind, sorted."""
        return sorted(name for of, name in self.active if of == kind)

    # --- loading ---------------------------------------------------------------------

    def _claims(self, provider: Provider) -> list[Claim]:
        where = (provider.distribution, provider.version)
        if self._allow is not None and _normal(provider.distribution) not in {*self._allow, GROUP}:
            return [Claim("", provider.name, "blocked", *where, "not in STREAMCORE_ALLOW")]
        if wish := self._unmet(provider):
            reason = f"needs {wish}, this is streamcore {self._core_version}"
            return [Claim("", provider.name, "incompatible", *where, reason)]
        try:
            module = _bounded(provider.load)
            offers = list(self._offers(module, f"{provider.distribution}:{provider.name}"))
        except BaseException as error:  # a plugin may do anything at import, even sys.exit
            if isinstance(error, KeyboardInterrupt):
                raise
            return [Claim("", provider.name, "broken", *where, _reason(error))]
        return [self._claim(offer, hook, provider) for hook, offer in offers]

    def _offers(self, module: Any, name: str) -> Iterable[tuple[str, Any]]:
        self._manager.register(module, name)
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            self._manager.unregister(module)  # else the next plugin is blamed for this one
            hook = re.search(r"unknown hook '(\w+)'", str(error))
            raise PluginError(f"unknown hook '{hook[1]}'" if hook else str(error)) from error
        for caller in self._manager.get_hookcallers(module) or ():
            for impl in caller.get_hookimpls():
                if impl.plugin is module:
                    for offer in impl.function():
                        yield caller.name, offer

    def _claim(self, offer: Any, hook: str, provider: Provider) -> Claim:
        where = (provider.distribution, provider.version)
        base = HOOKS[hook]
        if base is None:
            return Claim("command", str(offer.name), "active", *where, factory=offer)
        if not (isinstance(offer, type) and issubclass(offer, base)):
            what = offer.__name__ if isinstance(offer, type) else type(offer).__name__
            reason = f"{hook} returned {what}, which is not a {base.__name__} class"
            return Claim(base.kind, provider.name, "broken", *where, reason)
        identifier = str(getattr(offer, "identifier", ""))
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", identifier):
            reason = f"identifier '{identifier}' is not lower-case ASCII words joined by '-'"
            if twin := _look_alike(identifier, base.kind):
                reason += f"; it looks like '{twin}' of {OWNERS[base.kind, twin]}"
            return Claim(base.kind, identifier, "broken", *where, reason)
        return Claim(base.kind, identifier, "active", *where, factory=offer)

    def _unmet(self, provider: Provider) -> str:
        for text in provider.requires:
            try:
                wish = Requirement(text)
            except InvalidRequirement:
                continue
            if _normal(wish.name) == GROUP and not wish.marker and self._core_version:
                if not wish.specifier.contains(self._core_version, prereleases=True):
                    return f"{wish.name}{wish.specifier}"
        return ""

    def _imported(self, base: type[Plugin], path: str) -> type[Plugin]:
        module, _, name = path.replace(":", ".").rpartition(".")
        package = module.partition(".")[0]
        if self._allow is not None and _normal(package) not in self._allow:
            raise PluginError(
                f"class '{path}' is not allowed: STREAMCORE_ALLOW does not list '{package}'."
            )
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise PluginError(f"could not find and load class '{path}': {error}.") from error
        if not (isinstance(found, type) and issubclass(found, base)):
            raise PluginError(f"class '{path}' is not a streamcore {base.__name__}.")
        return found

    # --- reporting -------------------------------------------------------------------

    def _report_clashes(self, strict: bool) -> None:
        for claim in self.claims:
            if claim.status == "shadowed":
                winner = self.active[claim.kind, claim.identifier]
                text = (
                    f"{claim.kind} '{claim.identifier}' is claimed by {winner.source} (active) and "
                    f"{claim.source} (shadowed). Uninstall one, or set "
                    f"STREAMCORE_PREFER={claim.distribution} to switch."
                )
                if strict:
                    raise PluginError(text)
                warnings.warn(text, ClashWarning, stacklevel=4)

    def _missing(self, kind: str, identifier: str) -> str:
        names = self.names(kind)
        lines = [f"no {kind} called '{identifier}'."]
        owner = OWNERS.get((kind, identifier.lower().replace("_", "-")))
        wreck = next((c for c in self.claims if owner and c.distribution == owner), None)
        if wreck and wreck.status != "active":
            lines.append(f"{wreck.source} should provide it but is {wreck.status}: {wreck.reason}.")
        elif owner:
            lines.append(f"Install it: pip install {owner}")
        elif close := difflib.get_close_matches(identifier.lower(), names, n=1):
            lines.append(f"Did you mean '{close[0]}'?")
        lines.append(f"Installed: {', '.join(names) or 'none'}")
        return "\n".join(lines)


def _settle(claims: list[Claim], prefer: list[str]) -> list[Claim]:
    """Keep one claim per identifier active, by preference, owner and name; never by install order."""

    def rank(claim: Claim) -> tuple[int, bool, str]:
        name = _normal(claim.distribution)
        preferred = prefer.index(name) if name in prefer else len(prefer)
        owned = OWNERS.get((claim.kind, claim.identifier)) == claim.distribution
        return preferred, not owned, name

    settled: list[Claim] = []
    winners: dict[tuple[str, str], Claim] = {}
    for claim in sorted(claims, key=rank):
        slot = (claim.kind, claim.identifier)
        if claim.status != "active":
            settled.append(claim)
        elif slot not in winners:
            winners[slot] = claim
            settled.append(claim)
        elif winners[slot].factory is not claim.factory:  # the same class twice is no clash
            reason = f"{winners[slot].source} is active"
            settled.append(replace(claim, status="shadowed", reason=reason))
    return sorted(settled, key=lambda c: (c.kind, c.identifier, c.status, c.distribution))


def _bounded(load: Callable[[], Any]) -> Any:
    """Import in a thread, so that a plugin that hangs is named instead of hanging us."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((load(), None))
        except BaseException as error:  # handed to the caller, which reports it
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(IMPORT_SECONDS)
    if not outcome:
        raise PluginError(f"still importing after {IMPORT_SECONDS:g} s")
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def _reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"called sys.exit({error.code!r}) at import"
    if isinstance(error, PluginError):
        return str(error)
    return f"{type(error).__name__}: {error}"


_CONFUSABLE = str.maketrans("аеорсухіјѕкΑΒΕΚΟαεκορ", "aeopcyxijskABEKOaekop")


def _look_alike(identifier: str, kind: str) -> str:
    plain = identifier.translate(_CONFUSABLE).lower().replace("_", "-").strip()
    return plain if (kind, plain) in OWNERS else ""


def _normal(distribution_name: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution_name).strip().lower()


def _listed(variable: str) -> list[str] | None:
    text = os.environ.get(variable)
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@functools.cache
def installed() -> Registry:
    """The registry of the running interpreter."""
    found = {
        (ep.dist.name, ep.name, ep.value): Provider(
            ep.dist.name, ep.dist.version, ep.name, ep.load, tuple(ep.dist.requires or ())
        )
        for ep in entry_points(group=GROUP)
        if ep.dist is not None
    }
    try:
        core = distribution(GROUP).version
    except PackageNotFoundError:
        core = ""
    return Registry(
        found.values(),
        prefer=_listed("STREAMCORE_PREFER") or (),
        allow=_listed("STREAMCORE_ALLOW"),
        strict=os.environ.get("STREAMCORE_STRICT", "") not in ("", "0"),
        core_version=core,
    )
