"""Where reading starts and ends: the modes, and the text that lists offsets one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

LATEST, EARLIEST, COMMITTED = -1, -2, -3
"""Numbers that stand for a position in a list of specific offsets, as Kafka clients use them."""

EXAMPLE = "partition:0,offset:42;partition:1,offset:300"
_PAIR = re.compile(r"partition:([+-]?[0-9]+),offset:([+-]?[0-9]+)")
_LARGEST_PARTITION, _LARGEST_OFFSET = 2**31 - 1, 2**63 - 1


class Startup(Enum):
    """The choices of `scan.startup.mode`."""

    EARLIEST = "earliest-offset"
    LATEST = "latest-offset"
    GROUP = "group-offsets"
    TIMESTAMP = "timestamp"
    SPECIFIC = "specific-offsets"


class Bounded(Enum):
    """The choices of `scan.bounded.mode`."""

    UNBOUNDED = "unbounded"
    LATEST = "latest-offset"
    GROUP = "group-offsets"
    TIMESTAMP = "timestamp"
    SPECIFIC = "specific-offsets"


def parse_specific(text: str) -> Mapping[int, int]:
    """Read `partition:0,offset:42;partition:1,offset:300`; ValueError for anything else.

    No blanks, fixed order, at most one trailing ';'; of a partition listed twice the last counts.
    """
    found: dict[int, int] = {}
    for pair in text.removesuffix(";").split(";"):
        match = _PAIR.fullmatch(pair)
        if not match:
            raise ValueError(pair)
        partition, offset = int(match[1]), int(match[2])
        if not 0 <= partition <= _LARGEST_PARTITION or abs(offset) > _LARGEST_OFFSET:
            raise ValueError(pair)
        found[partition] = offset
    return found
