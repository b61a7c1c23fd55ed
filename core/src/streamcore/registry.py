"""Finds plugins by entry point and settles who provides what: one active factory per identifier."""

from __future__ import annotations

import difflib
import functools
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from . import filling
from .api import Connector, CredentialProvider, Format, Partitioner, Plugin
from .claims import OWNERS, Claim, Provider, clash, is_identifier, look_alike, normal, settle
from .errors import ClashWarning, PluginError
from .loading import GROUP, attempt_all, offers, returned
from .options import declared
from .versions import unmet

__all__ = ["OWNERS", "Claim", "Provider", "Registry", "installed", "load"]

HOOKS: Mapping[str, type[Plugin]] = {
    "register_connectors": Connector,
    "register_formats": Format,
    "register_partitioners": Partitioner,
    "register_credentials": CredentialProvider,
}
COMMANDS = "register_commands"
KINDS = {base.kind: base for base in HOOKS.values()}


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
        self._prefer = [normal(name) for name in prefer]
        self._allow = None if allow is None else {GROUP, *(normal(name) for name in allow)}
        self._strict = strict
        self._core_version = core_version
        self._late: list[tuple[Provider, Callable[..., Any]]] = []
        self.claims = self._settled(self._plugin_claims(list(providers)))
        self.active = {(c.kind, c.identifier): c for c in self.claims if c.status == "active"}

    def find(self, kind: str, identifier: str) -> Any:
        """Return the active factory, or say what to install, repair or type instead."""
        for name in (identifier, identifier.strip().lower().replace("_", "-")):
            if claim := self.active.get((kind, name)):
                return claim.factory
        base = KINDS.get(kind)
        if base and base.importable and re.fullmatch(r"\w+(\.\w+)*[.:]\w+", identifier):
            return self._imported(base, identifier)
        raise PluginError(self._missing(kind, identifier))

    def build(self, kind: str, identifier: str, given: filling.Given) -> Any:
        """Return the plugin `identifier`, configured from a table's options."""
        given = filling.hidden(given)
        return filling.build(self.find(kind, identifier), given, self.find)

    def names(self, kind: str) -> list[str]:
        """The active identifiers of one kind, sorted."""
        return sorted(name for of, name in self.active if of == kind)

    @functools.cached_property
    def commands(self) -> list[Claim]:
        """The claims on command names; only the command line needs them, so only it loads them."""
        calls = [functools.partial(returned, COMMANDS, hook) for _, hook in self._late]
        outcomes = attempt_all(calls)
        found: list[Claim] = []
        for (provider, _), outcome in zip(self._late, outcomes, strict=True):
            found += _command_claims(provider, outcome)
        return self._settled(found)

    # --- loading ---------------------------------------------------------------------

    def _plugin_claims(self, providers: list[Provider]) -> list[Claim]:
        claims = [claim for provider in providers if (claim := self._refused(provider))]
        names = {(claim.distribution, claim.identifier) for claim in claims}
        ready = [p for p in providers if (p.distribution, p.name) not in names]
        outcomes = attempt_all([functools.partial(offers, p.load, COMMANDS) for p in ready])
        for provider, outcome in zip(ready, outcomes, strict=True):
            if isinstance(outcome, PluginError):
                claims.append(_whole(provider, "broken", str(outcome)))
                continue
            found, late = outcome
            claims += [_claim(offer, hook, provider) for hook, offer in found]
            if late is not None:
                self._late.append((provider, late))
        return claims

    def _refused(self, provider: Provider) -> Claim | None:
        if self._allow is not None and normal(provider.distribution) not in self._allow:
            return _whole(provider, "blocked", "not in STREAMCORE_ALLOW")
        core = self._core_version
        if core and (wish := unmet(provider.requires, GROUP, core)):
            reason = f"needs {wish}, this is streamcore {core}"
            return _whole(provider, "incompatible", reason)
        return None

    def _settled(self, found: list[Claim]) -> list[Claim]:
        claims = settle(found, self._prefer)
        winners = {(c.kind, c.identifier): c for c in claims if c.status == "active"}
        losers = [c for c in claims if c.status == "shadowed"]
        clashes = [clash(winners[c.kind, c.identifier], c) for c in losers]
        if clashes and self._strict:
            raise PluginError("\n".join(clashes))
        for text in clashes:
            warnings.warn(text, ClashWarning, stacklevel=4)
        return claims

    def _imported(self, base: type[Plugin], path: str) -> type[Plugin]:
        module, _, name = path.replace(":", ".").rpartition(".")
        package = module.partition(".")[0]
        if self._allow is not None and not self._allow & _distributions_of(package):
            raise PluginError(
                f"class '{path}' is not allowed: STREAMCORE_ALLOW does not list '{package}'."
            )
        outcome = attempt_all([lambda: getattr(importlib.import_module(module), name)])[0]
        if isinstance(outcome, PluginError):
            raise PluginError(f"could not find and load class '{path}': {outcome}.") from outcome
        if not (isinstance(outcome, type) and issubclass(outcome, base)):
            raise PluginError(f"class '{path}' is not a streamcore {base.__name__}.")
        if not is_identifier(str(getattr(outcome, "identifier", ""))):
            raise PluginError(f"class '{path}' has no identifier; its options could not be named.")
        return outcome

    # --- reporting -------------------------------------------------------------------

    def _missing(self, kind: str, identifier: str) -> str:
        if kind not in KINDS:
            return f"no kind of plugin called '{kind}'.\nKinds: {', '.join(sorted(KINDS))}"
        names = self.names(kind)
        lines = [f"no {kind} called '{identifier}'."]
        owner = OWNERS.get((kind, identifier.strip().lower().replace("_", "-")))
        theirs = [c for c in self.claims if owner and normal(c.distribution) == owner]
        wrecks = [c for c in theirs or self.claims if c.status not in ("active", "shadowed")]
        if theirs and not wrecks:
            lines.append(f"{theirs[0].source} lacks it: pip install --upgrade {owner}")
        elif owner and not theirs:
            lines.append(f"Install it: pip install {owner}")
        elif theirs:
            wreck = wrecks[0]
            lines.append(f"{wreck.source} should provide it but is {wreck.status}: {wreck.reason}.")
        elif close := difflib.get_close_matches(identifier.lower(), names, n=1):
            lines.append(f"Did you mean '{close[0]}'?")
        else:
            lines += [f"{c.source} might provide it but is {c.status}: {c.reason}." for c in wrecks]
        lines.append(f"Installed: {', '.join(names) or 'none'}")
        return "\n".join(lines)


def _whole(provider: Provider, status: str, reason: str) -> Claim:
    """The claim of a provider that did not get as far as naming what it provides."""
    return Claim("", provider.name, status, provider.distribution, provider.version, reason)


def _claim(offer: Any, hook: str, provider: Provider) -> Claim:
    where = (provider.distribution, provider.version)
    base = HOOKS[hook]
    if not (isinstance(offer, type) and issubclass(offer, base)):
        what = offer.__name__ if isinstance(offer, type) else type(offer).__name__
        reason = f"{hook} returned {what}, which is not a {base.__name__} class"
        return Claim(base.kind, provider.name, "broken", *where, reason)
    identifier = str(getattr(offer, "identifier", ""))
    if not is_identifier(identifier):
        reason = f"identifier '{identifier}' is not lower-case ASCII words joined by '-'"
        if twin := look_alike(identifier, [name for kind, name in OWNERS if kind == base.kind]):
            reason += f"; it looks like '{twin}' of {OWNERS[base.kind, twin]}"
        return Claim(base.kind, identifier, "broken", *where, reason)
    try:
        list(declared(offer))
    except Exception as error:  # an annotation is any expression
        reason = f"the options of {offer.__name__} cannot be read: {type(error).__name__}: {error}"
        return Claim(base.kind, identifier, "broken", *where, reason)
    return Claim(base.kind, identifier, "active", *where, factory=offer)


def _command_claims(provider: Provider, outcome: list[Any] | PluginError) -> list[Claim]:
    where = (provider.distribution, provider.version)
    if isinstance(outcome, PluginError):
        return [Claim("command", provider.name, "broken", *where, str(outcome))]
    return [
        Claim("command", str(offer.name), "active", *where, factory=offer)
        if hasattr(offer, "name") and hasattr(offer, "make_context")
        else Claim(
            "command",
            provider.name,
            "broken",
            *where,
            f"{COMMANDS} returned {type(offer).__name__}, which is not a click command",
        )
        for offer in outcome
    ]


def _distributions_of(package: str) -> set[str]:
    from importlib.metadata import packages_distributions

    return {normal(package), *map(normal, packages_distributions().get(package, ()))}


def _listed(variable: str) -> list[str] | None:
    text = os.environ.get(variable)
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _provider(point: EntryPoint) -> Provider:
    dist = point.dist
    assert dist is not None
    try:
        name, version, requires = dist.name, dist.version, tuple(dist.requires or ())
    except Exception:  # what an interrupted installation leaves can be anything
        name = version = ""
    if not (name and version):
        return Provider(point.name, "?", point.name, _refuse_to_load)
    return Provider(name, version, point.name, point.load, requires)


def _refuse_to_load() -> None:
    raise PluginError("its installation is damaged, its metadata cannot be read: install it again")


def load(*, strict: bool | None = None) -> Registry:
    """A new registry of what is installed, as the environment's STREAMCORE_* variables ask."""
    points = [ep for ep in entry_points(group=GROUP) if ep.dist is not None]
    found = {(p.distribution, p.name, ep.value): p for ep in points for p in [_provider(ep)]}
    try:
        core = distribution(GROUP).version
    except PackageNotFoundError:
        core = ""
    if strict is None:
        strict = os.environ.get("STREAMCORE_STRICT", "") not in ("", "0")
    return Registry(
        found.values(),
        prefer=_listed("STREAMCORE_PREFER") or (),
        allow=_listed("STREAMCORE_ALLOW"),
        strict=strict,
        core_version=core,
    )


@functools.cache
def installed() -> Registry:
    """The registry of the running interpreter."""
    return load()
