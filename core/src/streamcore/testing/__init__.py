"""The testing kit: one-line helpers and contracts for plugin authors, and real services to test on."""

from .codec import decode, encode

__all__ = ["decode", "encode"]
