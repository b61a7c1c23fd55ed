"""Flink-SQL-style tables on Spark, in Python, one plugin at a time."""

from typing import TYPE_CHECKING, Any

from .api import (
    Connector,
    CredentialProvider,
    Credentials,
    Decoded,
    Decoder,
    Encoder,
    Format,
    Partitioner,
    RecordFormat,
    Rejected,
    Row,
    Target,
)
from .errors import (
    ClashWarning,
    ConnectionFailed,
    DataLossError,
    OptionError,
    OptionWarning,
    PluginError,
    Problem,
    RecordError,
    StreamcoreError,
)
from .hookspecs import hookimpl
from .options import at_least, between, option
from .table import ROW_KIND, ROW_KINDS, Column, MetadataKey, Table
from .values import ByteSize, Secret

if TYPE_CHECKING:
    from .spark.session import session

__all__ = [
    "ROW_KIND",
    "ROW_KINDS",
    "ByteSize",
    "ClashWarning",
    "Column",
    "ConnectionFailed",
    "Connector",
    "CredentialProvider",
    "Credentials",
    "DataLossError",
    "Decoded",
    "Decoder",
    "Encoder",
    "Format",
    "MetadataKey",
    "OptionError",
    "OptionWarning",
    "Partitioner",
    "PluginError",
    "Problem",
    "RecordError",
    "RecordFormat",
    "Rejected",
    "Row",
    "Secret",
    "StreamcoreError",
    "Table",
    "Target",
    "at_least",
    "between",
    "hookimpl",
    "option",
    "session",
]


def __getattr__(name: str) -> Any:
    if name == "session":  # the only public name that needs pyspark
        from .spark.session import session

        return session
    raise AttributeError(f"module 'streamcore' has no attribute '{name}'")
