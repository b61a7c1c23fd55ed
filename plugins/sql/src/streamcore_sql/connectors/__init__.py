"""Connectors that need no other system: datagen, print and blackhole."""
