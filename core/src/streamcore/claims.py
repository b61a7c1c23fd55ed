"""Who claims which identifier, who owns it, and which claim wins: never by install order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

_OWNED = {
    "streamcore": {
        "partitioner": "default fixed round-robin",
        "command": "list-plugins describe new-plugin doctor sandbox completion",
    },
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
    "streamcore-sql": {
        "connector": "datagen print blackhole",
        "format": "table-changes",
        "command": "run sql check infer why schema jobs stop lag",
    },
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


def is_identifier(text: str) -> bool:
    """Tell whether a plugin may be called this."""
    return re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", text) is not None


def normal(distribution: str) -> str:
    """The one spelling of a distribution's name, as the package index compares them."""
    return re.sub(r"[-_.]+", "-", distribution).strip().lower()


def settle(claims: Sequence[Claim], prefer: Sequence[str]) -> list[Claim]:
    """Keep one claim per identifier active: by preference, else by owner, else by name."""

    def rank(claim: Claim) -> tuple[int, bool, str, str]:
        name = normal(claim.distribution)
        preferred = prefer.index(name) if name in prefer else len(prefer)
        owned = OWNERS.get((claim.kind, claim.identifier)) == name
        return preferred, not owned, name, getattr(claim.factory, "__qualname__", "")

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
            settled.append(replace(claim, status="shadowed", reason=_lost_to(winners[slot], claim)))
    return sorted(settled, key=lambda c: (c.kind, c.identifier, c.status, c.distribution))


def _lost_to(winner: Claim, loser: Claim) -> str:
    if winner.distribution == loser.distribution:
        return f"{loser.source} registers two classes as '{loser.identifier}'"
    return f"{winner.source} is active"


def clash(winner: Claim, loser: Claim) -> str:
    """Name both sides of a clash, and what to do about it."""
    what = f"{loser.kind} '{loser.identifier}' is claimed"
    if winner.distribution == loser.distribution:
        return f"{what} twice by {loser.source}; one class is ignored. Report it to its authors."
    return (
        f"{what} by {winner.source} (active) and {loser.source} (shadowed). Uninstall one, "
        f"or set STREAMCORE_PREFER={loser.distribution} to switch."
    )


_CONFUSABLE = str.maketrans(
    "авекмнорстухіјѕԁԛԝһӏαβεζηικμνορτυχϲ",
    "abekmhopctyxijsdqwhlabezhikmnoptuxc",
)


def look_alike(identifier: str, known: Sequence[str]) -> str:
    """The known identifier that this one could be mistaken for, or nothing."""
    folded = unicodedata.normalize("NFKD", identifier).casefold()
    visible = (c for c in folded if unicodedata.category(c) not in ("Mn", "Cf", "Zs", "Cc"))
    plain = "".join(visible).translate(_CONFUSABLE).replace("_", "-")
    return plain if plain != identifier and plain in known else ""
