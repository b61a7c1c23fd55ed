"""Tells where processes listen, out of the kernel's own tables."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_LISTENING = "0A"


def listeners(pids: Iterable[int]) -> list[str]:
    """The addresses these processes listen on, as `host:port`."""
    sockets = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(link))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and f"socket:[{fields[9]}]" in sockets:
                found.append(_address(fields[1]))
    return sorted(found)


def family(pid: int) -> list[int]:
    """A process and all that descend from it, as they are now."""
    parents = {each: parent for each, (parent, _) in _parents_and_sessions()}
    found = [pid]
    for each in found:  # grows while it is walked
        found += [child for child, parent in parents.items() if parent == each]
    return found


def session_of(pid: int) -> list[int]:
    """The processes of the session that this one leads; none if it leads none."""
    return [each for each, (_, session) in _parents_and_sessions() if session == pid]


def _parents_and_sessions() -> Iterator[tuple[int, tuple[int, int]]]:
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            yield int(entry.name), (int(fields[1]), int(fields[3]))


def _address(text: str) -> str:
    host, _, port = text.partition(":")
    words = [bytes.fromhex(host[at : at + 8])[::-1] for at in range(0, len(host), 8)]
    known = ipaddress.ip_address(b"".join(words))
    return f"{getattr(known, 'ipv4_mapped', None) or known}:{int(port, 16)}"
