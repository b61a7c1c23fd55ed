"""CREATE FUNCTION ... LANGUAGE PYTHON: a Python function becomes one of Spark's."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import typing
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import SqlError
from .statements import CreateFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "STRING",
    "bool": "BOOLEAN",
    "bytes": "BINARY",
    "Decimal": "DECIMAL(38, 18)",
    "date": "DATE",
    "datetime": "TIMESTAMP",
}


def find(function: CreateFunction) -> Callable[..., Any]:
    """Import what a function names, and check that Spark could call it."""
    module, _, attribute = function.target.replace(":", ".").rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute) if module else None
    except (ImportError, AttributeError) as error:
        trouble = f"function '{function.name}' cannot be loaded from '{function.target}': {error}"
        raise SqlError(trouble, function.place) from error
    if not callable(found):
        hint = "Write AS 'module.function', the function at the top of an importable module."
        raise SqlError(f"'{function.target}' is not a function", function.place, hint)
    if not hasattr(found, "returnType"):
        returned(found, function)
    return typing.cast(Callable[..., Any], found)


def register(function: CreateFunction, spark: SparkSession) -> None:
    """Make a function known to Spark under its own name."""
    found: Any = find(function)
    _ship(sys.modules[found.__module__])
    if hasattr(found, "returnType"):  # made with pyspark's @udf, which says its type itself
        spark.udf.register(function.name.last, found)
    else:
        spark.udf.register(function.name.last, found, returned(found, function))


def returned(found: Callable[..., Any], function: CreateFunction) -> str:
    """The SQL type of what a function's annotation says it returns."""
    try:
        hint = typing.get_type_hints(found).get("return")
    except (NameError, TypeError):
        hint = None
    arms = [arm for arm in typing.get_args(hint) if arm is not type(None)]
    kind = arms[0] if arms and typing.get_origin(hint) is not list else hint
    if typing.get_origin(hint) is list and arms:
        inner = _TYPES.get(getattr(arms[0], "__name__", ""))
        if inner:
            return f"ARRAY<{inner}>"
    name = getattr(kind, "__name__", "")
    if name in _TYPES:
        return _TYPES[name]
    known = ", ".join(_TYPES)
    raise SqlError(
        f"function '{function.name}' does not say which type '{function.target}' returns",
        function.place,
        f"Annotate it with one of {known}, or decorate it with pyspark's udf(returnType=...).",
    )


def _ship(module: ModuleType) -> None:
    """Send a module that workers may not have installed along with its functions."""
    from pyspark import cloudpickle as pickling

    cloudpickle: Any = pickling

    installed = tuple(sysconfig.get_paths()[key] for key in ("purelib", "platlib", "stdlib"))
    if not (getattr(module, "__file__", None) or "").startswith(installed):
        cloudpickle.register_pickle_by_value(module)
