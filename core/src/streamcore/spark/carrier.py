"""How a table travels through Spark's options: plain keys, or everything in one JSON option.

Spark lower-cases plain keys and shows them in plans. The one JSON option keeps keys as they were
written, and its name is one that Spark redacts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import reports
from ..errors import OptionError
from ..table import Table
from ..values import Secret

JSON_OPTION = "secret-options"
SCHEMA_OPTION = "columns"
_ADDED_BY_SPARK = {"path", "checkpointlocation", "queryname"}


@dataclass(frozen=True)
class Carried:
    """What came through: which connector, its options, and the table if it was sent along."""

    connector: str
    options: Mapping[str, str]
    table: Table | None


def pack(options: Mapping[str, str | Secret], table: Table | None = None) -> dict[str, str]:
    """Make the one Spark option that carries a table and its options.

    If this process listens to what tasks report, its address goes along, and the job's name.
    """
    if table is not None and not table.reports:
        table = replace(table, reports=reports.address(), job=reports.job())
    plain = {k: v.reveal() if isinstance(v, Secret) else v for k, v in options.items()}
    payload = {"options": plain, "table": table.to_json() if table else None}
    return {JSON_OPTION: json.dumps(payload, sort_keys=True)}


def unpack(given: Mapping[str, str]) -> Carried:
    """Read options from Spark; plain ones override those inside the JSON option."""
    payload = _payload(given.get(JSON_OPTION) or "{}")
    options = dict(payload.get("options") or {})
    options |= {
        key: value
        for key, value in given.items()
        if key != JSON_OPTION and key.lower() not in _ADDED_BY_SPARK and value is not None
    }
    connector = options.pop("connector", None)
    if connector is None:
        raise OptionError(
            "the table",
            ["connector: required but missing; it names the plugin to use, such as 'kafka'"],
            "Run 'streamcore list-plugins --kind connector' to see which are installed.",
        )
    table = Table.from_json(payload["table"]) if payload.get("table") else None
    return Carried(connector, options, table)


def _payload(text: str) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except ValueError:
        payload = None  # and no word of what it holds
    if not isinstance(payload, dict):
        told = f"{JSON_OPTION}: is not the JSON that streamcore.spark.carrier.pack() makes"
        raise OptionError("the table", [told])
    return payload
