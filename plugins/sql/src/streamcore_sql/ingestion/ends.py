"""The options of a source or a sink, checked by the connector they are for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from streamcore import Connector, OptionError, OptionWarning, PluginError, Secret
from streamcore.options import declared
from streamcore.registry import installed

from ..errors import did_you_mean
from .errors import Problems
from .model import End

Options = Mapping[str, str | Secret]
_DATABASES = {
    "mysql",
    "postgres",
    "postgresql",
    "oracle",
    "sqlserver",
    "mongodb",
    "db2",
    "tidb",
    "oceanbase",
    "vitess",
}
_INSTEAD = """\
A package that reads the database itself would be called 'streamcore-{type}'; none is installed.
Let Debezium, Canal, Maxwell or OGG write its changes to Kafka, and read those:

source:
  type: kafka
  topic: {topic}
  properties.bootstrap.servers: localhost:9092
  scan.startup.mode: earliest-offset
  value.format: debezium-json"""


def secretive(end: End, options: Mapping[str, str]) -> dict[str, str | Secret]:
    """Options with every value hidden that the file calls a secret."""
    return {key: Secret(text) if key in end.secrets else text for key, text in options.items()}


def build(
    end: End, label: str, options: Options, problems: Problems, own: Sequence[str] = ()
) -> tuple[Connector | None, list[str]]:
    """The connector of an end and what it notes; problems go where their keys stand.

    `own` are the keys that the job file adds to those of the connector.
    """
    if end.type in _DATABASES and end.type not in installed().names("connector"):
        _refuse_database(end, label, problems)
        return None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OptionWarning)
        try:
            found = installed().build("connector", end.type, options)
        except PluginError as error:
            first, *rest = str(error).splitlines()
            node = end.node.members.get("type", end.node)
            problems.add(f"{label}: type: {first.rstrip('.')}", node, "\n".join(rest))
            return None, []
        except OptionError as error:
            _tell(error, end, label, problems, own)
            return None, []
    return found, [f"{label}: {warning.message}" for warning in caught]


def _refuse_database(end: End, label: str, problems: Problems) -> None:
    tables = end.node.members.get("tables")
    topic = tables.text.partition(".")[0] if tables and isinstance(tables.value, str) else "shop"
    hint = _INSTEAD.format(type=end.type, topic=topic if topic.isidentifier() else "shop")
    trouble = f"{label}: type: no connector called '{end.type}'"
    problems.add(trouble, end.node.members["type"], hint)


def _tell(error: OptionError, end: End, label: str, problems: Problems, own: Sequence[str]) -> None:
    nodes = {key.lower(): node for key, node in end.nodes.items()}
    for key, trouble in error.problems:
        node = nodes.get(key.lower())
        text = f"{label}: {key}: {trouble}" if key else f"{label}: {trouble}"
        if node is None:
            problems.add(text, end.node, key=True)
            continue
        hint = ""
        if "unknown option" in trouble and "did you mean" not in trouble:
            hint = did_you_mean(key, own) or (
                f"Run 'streamcore describe connector {end.type}' to see every option."
            )
        problems.add(text, node, hint, key="unknown option" in trouble)


def has_option(connector: Connector, key: str) -> bool:
    """Whether a connector knows an option."""
    return any(key in each.spec.keys for each in declared(type(connector)))
