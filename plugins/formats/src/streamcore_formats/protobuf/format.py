"""The `protobuf` format: one message type, known by its generated class or its descriptor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streamcore import Decoder, Encoder, Format, OptionError, Problem, option

if TYPE_CHECKING:
    import pyarrow as pa


class Protobuf(Format):
    """Messages of one Protobuf type."""

    identifier = "protobuf"
    example_columns = ("seconds BIGINT", "nanos INT")

    message: str = option(
        "message-class-name",
        "The generated class, such as 'shop.orders_pb2.Order', which every worker must be able to "
        "import; or, with 'descriptor-file', the full name of the message, such as 'shop.Order'.",
        example="google.protobuf.timestamp_pb2.Timestamp",
    )
    descriptor_file: str | None = option(
        "descriptor-file",
        "File with the message's descriptors, written by "
        "'protoc --include_imports --descriptor_set_out=FILE'; every worker must have it.",
        default=None,
    )
    ignore_errors: bool = option(
        "ignore-parse-errors", "Skip messages that cannot be parsed.", default=False
    )
    read_defaults: bool = option(
        "read-default-values",
        "Read fields that are not set as their default values instead of NULL, and empty arrays "
        "and maps as empty.",
        default=False,
    )
    null_text: str = option(
        "write-null-string-literal",
        "What to write for NULL strings inside arrays and maps, where Protobuf has no NULL.",
        default="",
    )

    def problems(self) -> Iterator[Problem | str]:
        from .descriptors import class_name_problem

        if self.descriptor_file is None and (trouble := class_name_problem(self.message)):
            yield Problem("message-class-name", trouble)

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        from .columns import problems_of
        from .descriptors import NoSuchMessage, message_class

        try:
            found = message_class(self.message, self.descriptor_file)
        except NoSuchMessage as error:
            yield Problem(error.key, str(error))
        else:
            yield from problems_of(schema, found.DESCRIPTOR)

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .reading import ProtobufDecoder

        wanted = [schema.field(name) for name in (schema.names if columns is None else columns)]
        return ProtobufDecoder(
            self._message_class(schema, writing=False),
            wanted,
            read_defaults=self.read_defaults,
            ignore_errors=self.ignore_errors,
        )

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .writing import ProtobufEncoder

        return ProtobufEncoder(self._message_class(schema, writing=True), schema, self.null_text)

    def _message_class(self, schema: pa.Schema, *, writing: bool) -> Any:
        from .descriptors import message_class

        if problems := list(self.schema_problems(schema, writing=writing)):
            raise OptionError(f"format '{self.identifier}'", problems)
        return message_class(self.message, self.descriptor_file)
