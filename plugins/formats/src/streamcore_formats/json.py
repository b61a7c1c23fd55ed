"""The format `json`: one object per message, or an array of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from streamcore import Decoder, Encoder, Problem, option

from .json_options import JsonOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from .json_exact import Rules


class Json(JsonOptions):
    """JSON objects, one row each; an array of objects is as many rows."""

    identifier = "json"

    fail_on_missing_field: bool = option(
        "fail-on-missing-field",
        "Reject a message that lacks a column, instead of reading NULL.",
        default=False,
    )
    streaming_parser: bool = option(
        "decode.json-parser.enabled",
        "Read numbers into STRING columns as they were written, and reject a bare null; false "
        "normalises them (1.10 becomes 1.1) and skips a bare null.",
        default=True,
    )

    def problems(self) -> Iterator[Problem | str]:
        if self.fail_on_missing_field and self.ignore_parse_errors:
            yield Problem(
                "fail-on-missing-field", "cannot be true together with 'ignore-parse-errors'"
            )

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .json_read import json_decoder

        return json_decoder(schema, columns, self.rules())

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .json_encoder import JsonEncoder

        return JsonEncoder(schema, self.style())

    def rules(self) -> Rules:
        return (
            super()
            .rules()
            ._replace(fail_on_missing=self.fail_on_missing_field, tree=not self.streaming_parser)
        )
