"""A Kinesis emulator that also fails as AWS does."""

from .address import ExistingKinesis, KinesisAddress
from .emulator import KinesisEmulator
from .faults import Call, Faults, Ledger

__all__ = ["Call", "ExistingKinesis", "Faults", "KinesisAddress", "KinesisEmulator", "Ledger"]
