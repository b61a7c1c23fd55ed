"""The formats that ship with streamcore."""

from __future__ import annotations

from collections.abc import Iterable

from streamcore import Format, hookimpl


@hookimpl
def register_formats() -> Iterable[type[Format]]:
    from .avro.plain import Avro
    from .csv import Csv
    from .json import Json
    from .raw import Raw

    return [Avro, Csv, Json, Raw]
