"""Flink SQL statements in, Spark streaming queries out."""

from .errors import SqlError
from .parser import parse
from .source import Source

__all__ = ["Source", "SqlError", "parse"]
