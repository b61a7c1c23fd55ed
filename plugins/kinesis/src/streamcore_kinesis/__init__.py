"""Kinesis tables for streamcore."""
