"""One test at two scales: small in every run, full in a soak, both from a printed seed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

SEED, SHRINK = "STREAMCORE_SEED", "STREAMCORE_SOAK_SCALE"


@dataclass
class Scale:
    """How much of a fault a test meets: `scale.rows` is a figure of it, `seed` repeats the run."""

    number: int
    """The test's row in docs/reliability.md."""
    figures: Mapping[str, int]
    seed: int = 0
    soak: bool = False
    """Whether this is the full form, which has the machine for itself."""
    measured: dict[str, str] = field(default_factory=dict)
    """What the report shows beside the result."""

    def __getattr__(self, name: str) -> int:
        if name in (figures := self.__dict__.get("figures", {})):
            return int(figures[name])
        raise AttributeError(name)

    def bound(self, seconds: float) -> float:
        """How long something may take: as promised in a soak, ten times that beside other tests."""
        return seconds if self.soak else 10 * seconds

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in self.figures.items())


def scenario(
    number: int,
    *,
    full: Mapping[str, int],
    small: Mapping[str, int],
    always: bool = True,
    timeout: int = 7200,
) -> Callable[..., Any]:
    """Give a test its `scale`: a small one for every run, and the full one for soaks alone.

    What is dear even when small is not run `always`; its small figures are then the least. A soak
    is given up after `timeout` seconds.
    """
    soak = [pytest.mark.soak, pytest.mark.timeout(timeout)]
    largest = Scale(number, _shrunk(small, full), soak=True)
    sizes = [pytest.param(largest, id="full", marks=soak)]
    if always:
        least = Scale(number, small)
        sizes.insert(0, pytest.param(least, id="small", marks=pytest.mark.timeout(900)))
    return pytest.mark.parametrize("scale", sizes, indirect=True)


def _shrunk(small: Mapping[str, int], full: Mapping[str, int]) -> Mapping[str, int]:
    """A share of the full figures, if the environment asks for one; never below the small ones."""
    share = float(os.environ.get(SHRINK, "1"))
    return {name: max(small.get(name, 0), int(count * share)) for name, count in full.items()}


def seeded(scale: Scale) -> Scale:
    """The same scale with the seed of this run: from the environment, or a new one."""
    chosen = int(os.environ.get(SEED) or secrets.randbelow(2**31))
    return Scale(scale.number, scale.figures, chosen, scale.soak)
