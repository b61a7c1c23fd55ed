"""The testing kit: one-line helpers, contracts for plugin authors, and real services."""

from .codec import decode, encode

__all__ = ["decode", "encode"]
