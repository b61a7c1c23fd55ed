"""Keeps a tenant's rows together: a complete third-party partitioner."""

from zlib import crc32

from streamcore import Partitioner, hookimpl, option


class ByTenant(Partitioner):
    """Keeps a tenant's rows together, whatever the message key is."""

    identifier = "by-tenant"

    column: str = option("column", "The column that names the tenant.", default="tenant")

    def choose(self, row, key, target):
        return crc32(str(row[self.column]).encode()) % target.partitions

    def choose_key(self, row, target):
        return str(row[self.column])[:256] or "-"


@hookimpl
def register_partitioners():
    return [ByTenant]
