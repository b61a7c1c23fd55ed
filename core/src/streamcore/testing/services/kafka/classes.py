"""Kafka's classes, loaded once per Java and mapped by every broker after that."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from ..downloads import Package
from ..process import free_port, java
from .listeners import Listener, replication, topology
from .node import Node
from .storage import random_id
from .tools import VERSION, classpath

ARCHIVE = "classes.jsa"  # loading classes is most of a broker's start: 5.5 s of CPU become 2


def archive_flags() -> list[str]:
    """What to give the JVM; it ignores an archive that does not fit."""
    archive = _package().path() / ARCHIVE
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def _package() -> Package:
    program = os.path.realpath(java())
    identity = f"{program} {os.stat(program).st_mtime_ns} {classpath()}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    return Package(f"kafka-{VERSION}-classes-{digest}", _fill)


def _fill(target: Path, scratch: Path) -> None:
    """Run a broker once and have the JVM write down at its end what it loaded."""
    home, client = scratch / "broker", free_port()
    shutil.rmtree(home, ignore_errors=True)
    properties = topology([free_port()], 1, [Listener("PLAINTEXT", client)]) | replication(1)
    record = ["-XX:+IgnoreUnrecognizedVMOptions", f"-XX:ArchiveClassesAtExit={target / ARCHIVE}"]
    node = Node(1, home, properties, client_port=client, jvm=record)
    node.format(random_id())
    node.start()
    node.process.stop(timeout=120)
