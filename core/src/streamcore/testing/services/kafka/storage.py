"""Formatted broker storage, made once by Kafka's own tool and copied for each broker after that."""

from __future__ import annotations

import hashlib
import re
import shutil
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

from ..downloads import MANIFEST, Package
from .tools import VERSION, run_tool

ANY_NODE = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:9093,PLAINTEXT://127.0.0.1:9092
"""


def copy(data: Path, cluster: str, number: int, arguments: Sequence[str] = ()) -> None:
    """Storage for one member of a cluster, formatted with these arguments of StorageTool."""
    shutil.copytree(_template(arguments).path(), data, ignore=shutil.ignore_patterns(MANIFEST))
    meta = data / "meta.properties"
    text = meta.read_text()
    for key, value in {"cluster": cluster, "node": number, "directory": random_id()}.items():
        text = re.sub(rf"(?m)^{key}\.id=.*$", f"{key}.id={value}", text)
    meta.write_text(text)


def random_id() -> str:
    """A Kafka uuid; one that begins with a dash would be taken for an option."""
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        continue
    return text


def _template(arguments: Sequence[str]) -> Package:
    def fill(target: Path, scratch: Path) -> None:
        config = scratch / "server.properties"
        config.write_text(f"{ANY_NODE}log.dirs={target}\n")
        identity = ["-t", random_id(), "-c", str(config)]
        run_tool("kafka.tools.StorageTool", "format", *identity, *arguments)

    digest = hashlib.sha256("\0".join(arguments).encode()).hexdigest()[:12]
    return Package(f"kafka-{VERSION}-storage-{digest}", fill)
