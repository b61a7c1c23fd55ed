"""Tries to refute "nothing lost, nothing twice": numbered rows, readers, and a checker of both."""

from .checker import Findings, Seen, compare
from .copying import Copy, CopyEnded
from .producer import Ledger
from .readers import LiveReader, read_to_end
from .scenario import Scale, scenario

__all__ = [
    "Copy",
    "CopyEnded",
    "Findings",
    "Ledger",
    "LiveReader",
    "Scale",
    "Seen",
    "compare",
    "read_to_end",
    "scenario",
]
