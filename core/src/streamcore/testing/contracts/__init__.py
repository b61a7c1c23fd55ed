"""What every plugin must keep, as tests to inherit: subclass a contract and name the plugin."""

from .connector import ConnectorContract
from .credentials import CredentialsContract
from .format import FormatContract
from .partitioner import PartitionerContract
from .plugin import PluginContract

__all__ = [
    "ConnectorContract",
    "CredentialsContract",
    "FormatContract",
    "PartitionerContract",
    "PluginContract",
]
