"""The formats that ship with streamcore."""

from __future__ import annotations

from collections.abc import Iterable

from streamcore import Format, hookimpl


@hookimpl
def register_formats() -> Iterable[type[Format]]:
    from .avro.confluent import AvroConfluent
    from .avro.debezium import DebeziumAvroConfluent
    from .avro.plain import Avro
    from .canal_json import CanalJson
    from .csv import Csv
    from .debezium_json import DebeziumJson
    from .json import Json
    from .maxwell_json import MaxwellJson
    from .ogg_json import OggJson
    from .protobuf.format import Protobuf
    from .raw import Raw

    return [
        Avro,
        AvroConfluent,
        CanalJson,
        Csv,
        DebeziumAvroConfluent,
        DebeziumJson,
        Json,
        MaxwellJson,
        OggJson,
        Protobuf,
        Raw,
    ]
