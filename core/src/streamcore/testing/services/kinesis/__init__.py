"""A Kinesis emulator that also fails as AWS does."""

from .emulator import KinesisEmulator
from .faults import Call, Faults, Ledger

__all__ = ["Call", "Faults", "KinesisEmulator", "Ledger"]
