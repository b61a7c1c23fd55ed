"""Flink queries to Spark SQL, with what a planner must know about them."""

from .query import rewrite, rewrite_expression, watermark_delay
from .result import (
    Aggregation,
    DropDuplicates,
    Join,
    Note,
    Rewritten,
    Stage,
    TableRef,
    TemporalJoin,
    Window,
)

__all__ = [
    "Aggregation",
    "DropDuplicates",
    "Join",
    "Note",
    "Rewritten",
    "Stage",
    "TableRef",
    "TemporalJoin",
    "Window",
    "rewrite",
    "rewrite_expression",
    "watermark_delay",
]
