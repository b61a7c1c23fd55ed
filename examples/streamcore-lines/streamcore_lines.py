"""Delimited lines for streamcore: a complete third-party format."""

from streamcore import RecordError, RecordFormat, hookimpl, option


class Lines(RecordFormat):
    """One line per message, its columns split by a separator."""

    identifier = "lines"

    separator: str = option("separator", "Text between two columns.", default="|")

    def decode_record(self, payload, schema):
        parts = payload.decode().split(self.separator)
        if len(parts) != len(schema):
            raise RecordError(f"expected {len(schema)} columns, found {len(parts)}")
        yield dict(zip(schema.names, parts, strict=True))

    def encode_record(self, row, schema):
        return self.separator.join(row.values()).encode()


@hookimpl
def register_formats():
    return [Lines]
