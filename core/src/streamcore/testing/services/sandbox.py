"""A sandbox of services that runs on by itself until it is taken down."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .kafka import KafkaBroker
from .kinesis import KinesisEmulator
from .process import Detached, ServiceError
from .providers import KAFKA, KINESIS, REGISTRY
from .registry import SchemaRegistry
from .watchdog import birth

SERVICES = ("kafka", "schema-registry", "kinesis")
VARIABLES = {"kafka": KAFKA, "schema-registry": REGISTRY, "kinesis": KINESIS}
PORTS = {"kafka": 9092, "schema-registry": 8081, "kinesis": 4568}
LOGS = {
    "kafka": "broker-1/broker.log",
    "schema-registry": "registry.log",
    "kinesis": "kinesis.log",
}


@dataclass(frozen=True)
class Running:
    """A service of the sandbox: its address, and its processes as (pid, birth)."""

    name: str
    address: str
    log: str
    processes: tuple[tuple[int, str], ...]

    @property
    def alive(self) -> bool:
        return all(birth(pid) == born for pid, born in self.processes)


@dataclass(frozen=True)
class Sandbox:
    """The services that were started, alive or not."""

    services: tuple[Running, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make tests and examples use this sandbox."""
        return {VARIABLES[each.name]: each.address for each in self.services if each.alive}

    def find(self, name: str) -> Running | None:
        return next((each for each in self.services if each.name == name), None)


def up(
    services: Iterable[str] = SERVICES, report: Callable[[str], None] = lambda line: None
) -> Sandbox:
    """Start what is not running yet; `report` is told of each step."""
    wanted = list(services)
    if unknown := [name for name in wanted if name not in SERVICES]:
        raise ServiceError(f"no service called '{unknown[0]}'. There are: {', '.join(SERVICES)}")
    with _locked():
        for name in wanted:
            now = _read()
            running = now.find(name)
            if running is not None and running.alive:
                report(f"{name} is running")
                continue
            if running is not None:
                _end(running)
            report(f"starting {name}")
            others = tuple(each for each in now.services if each.name != name)
            _write(Sandbox((*others, _start(name))))
        return _read()


def down() -> Sandbox:
    """End exactly the processes of the sandbox, and give back what was ended."""
    with _locked():
        ended = _read()
        for running in ended.services:
            _end(running)
        _state().unlink(missing_ok=True)
        for name in SERVICES:
            shutil.rmtree(_home() / name, ignore_errors=True)
        return ended


def status() -> Sandbox:
    """What was started and not taken down; each service says whether it is alive."""
    return _read()


def logs(service: str) -> Path:
    """The log file of a service."""
    running = _read().find(service)
    if running is None:
        raise ServiceError(f"'{service}' is not in the sandbox. Run 'streamcore sandbox up' first.")
    return Path(running.log)


def _start(name: str) -> Running:
    home = _home() / name
    shutil.rmtree(home, ignore_errors=True)
    place = Detached(home, PORTS[name])
    service: KafkaBroker | SchemaRegistry | KinesisEmulator
    if name == "kafka":
        service = KafkaBroker(detached=place)
    elif name == "schema-registry":
        service = SchemaRegistry(detached=place)
    else:
        service = KinesisEmulator(detached=place)
    service.__enter__()  # what follows is its life without us, ended by down()
    born = tuple((pid, birth(pid) or "") for pid in service.pids)
    return Running(name, _address(service), str(home / LOGS[name]), born)


def _address(service: KafkaBroker | SchemaRegistry | KinesisEmulator) -> str:
    match service:
        case KafkaBroker():
            return service.bootstrap_servers
        case SchemaRegistry():
            return service.url
        case KinesisEmulator():
            return service.endpoint_url


def _end(running: Running, patience: float = 10) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        alive = [pid for pid, born in running.processes if birth(pid) == born]
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
        deadline = time.monotonic() + patience
        while running.processes and time.monotonic() < deadline:
            if not any(birth(pid) == born for pid, born in running.processes):
                return
            time.sleep(0.05)


def _home() -> Path:
    """Where the sandbox lives: STREAMCORE_STATE, else the user's directory for such state."""
    if chosen := os.environ.get("STREAMCORE_STATE"):
        return Path(chosen).expanduser().absolute() / "sandbox"
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "streamcore" / "sandbox"


def _state() -> Path:
    return _home() / "state.json"


def _read() -> Sandbox:
    try:
        rows = json.loads(_state().read_text())
    except FileNotFoundError:
        return Sandbox()
    except ValueError:
        raise ServiceError(f"'{_state()}' is not readable; remove it.") from None
    return Sandbox(
        tuple(
            Running(
                row["name"],
                row["address"],
                row["log"],
                tuple((pid, born) for pid, born in row["processes"]),
            )
            for row in rows
        )
    )


def _write(sandbox: Sandbox) -> None:
    fresh = _state().with_suffix(".new")
    fresh.write_text(json.dumps([asdict(each) for each in sandbox.services], indent=1))
    fresh.replace(_state())


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    _home().mkdir(parents=True, exist_ok=True)
    with (_home() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
