"""What core itself provides, through the same door as every other plugin."""

from __future__ import annotations

from collections.abc import Iterable

from .api import Partitioner
from .hookspecs import hookimpl
from .partitioners import Default, Fixed, RoundRobin


@hookimpl
def register_partitioners() -> Iterable[type[Partitioner]]:
    """The partitioners every connector shares."""
    return [Default, Fixed, RoundRobin]
