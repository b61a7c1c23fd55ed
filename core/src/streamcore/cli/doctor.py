"""`streamcore doctor`: is everything here that a job needs, and if not, what to do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from urllib.parse import urlsplit

import click

from ..claims import normal
from ..registry import load
from .output import formats, print_json, print_table
from .status import FAILED, OK

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17
SERVICES = {
    "kafka": "STREAMCORE_KAFKA",
    "schema registry": "STREAMCORE_SCHEMA_REGISTRY",
    "kinesis": "STREAMCORE_KINESIS",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `ok`, `note` (nothing to repair) or `problem`."""

    what: str
    status: str
    detail: str
    advice: str = ""


@click.command("doctor")
@formats()
def command(output: str) -> int:
    """Check Python, Java, Spark, plugins and the services named in the environment.

    Ends with status 1 if there is a problem.
    """
    findings = [finding for check in CHECKS for finding in check()]
    if output == "json":
        print_json([asdict(finding) for finding in findings])
    else:
        rows = [(f.what, f.status, f.detail, f.advice) for f in findings]
        print_table(("WHAT", "STATUS", "DETAIL", "WHAT TO DO"), rows)
    return FAILED if any(finding.status == "problem" for finding in findings) else OK


def check_python() -> Iterator[Finding]:
    """The interpreter that runs us, which Spark's workers will use too."""
    found = f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        yield Finding("python", "problem", found, "use Python 3.11 or newer")
    else:
        yield Finding("python", "ok", found)


def check_java() -> Iterator[Finding]:
    """The Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which(f"{home}/bin/java" if home else "java")
    advice = f"install a JDK {OLDEST_JAVA} or newer, and put it on PATH or into JAVA_HOME"
    if program is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java on PATH"
        yield Finding("java", "problem", where, advice)
        return
    told = subprocess.run(
        [program, "-version"], capture_output=True, text=True, check=False, timeout=30
    ).stderr
    release = re.search(r'version "(?:1\.)?(\d+)', told)
    first = told.partition("\n")[0].strip() or "no answer"
    if release and int(release[1]) >= OLDEST_JAVA:
        yield Finding("java", "ok", f"{first} at {program}")
    else:
        yield Finding("java", "problem", f"{first} at {program}", advice)


def check_spark() -> Iterator[Finding]:
    """PySpark by its version alone: importing it would take seconds."""
    wanted = next(
        (r.partition(";")[0].strip() for r in requires("streamcore") or () if "pyspark" in r), ""
    )
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        yield Finding("spark", "problem", "PySpark is missing", "pip install 'streamcore[spark]'")
        return
    from packaging.requirements import Requirement

    if wanted and not Requirement(wanted).specifier.contains(found, prereleases=True):
        yield Finding("spark", "problem", f"PySpark {found}", f"pip install '{wanted}'")
    else:
        yield Finding("spark", "ok", f"PySpark {found}")
    if "SPARK_HOME" in os.environ:
        yield Finding(
            "spark", "note", f"SPARK_HOME={os.environ['SPARK_HOME']} overrides PySpark's own"
        )


def check_plugins() -> Iterator[Finding]:
    """Everything `list-plugins` would complain about, and settings that match nothing."""
    registry = load(strict=False)
    claims = registry.claims + registry.commands
    active = [claim for claim in claims if claim.status == "active"]
    yield Finding("plugins", "ok", f"{len(active)} active")
    for claim in claims:
        if claim.status == "active":
            continue
        status = "note" if claim.status == "blocked" else "problem"
        name = f"{claim.kind} {claim.identifier}".strip()
        detail = f"{name} of {claim.source} is {claim.status}: {claim.reason}"
        yield Finding("plugins", status, detail, "see 'streamcore list-plugins'")
    present = {normal(claim.distribution) for claim in claims}
    for variable in ("STREAMCORE_PREFER", "STREAMCORE_ALLOW"):
        for name in filter(None, map(str.strip, os.environ.get(variable, "").split(","))):
            if normal(name) not in present:
                yield Finding(
                    "plugins", "note", f"{variable} names '{name}', which is not installed"
                )


def check_services() -> Iterator[Finding]:
    """Whether somebody listens at the addresses that the environment and the sandbox name."""
    addresses = {name: os.environ[key] for name, key in SERVICES.items() if os.environ.get(key)}
    for name, address in {**_sandbox(), **addresses}.items():
        for one in address.split(","):
            yield _reachable(name, one.strip())
    if not addresses and not _sandbox():
        names = ", ".join(SERVICES.values())
        advice = "'streamcore sandbox up' starts them here"
        yield Finding("services", "note", f"none is known: {names} are not set", advice)


def _sandbox() -> dict[str, str]:
    from .sandbox import addresses

    return addresses()


def _reachable(name: str, address: str) -> Finding:
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 9092)
    except ValueError as error:
        return Finding(name, "problem", f"{address}: {error}", "correct the address")
    place = f"{parts.hostname}:{port}"
    try:
        with socket.create_connection((parts.hostname or "", port), timeout=2):
            return Finding(name, "ok", f"{place} answers")
    except OSError as error:
        reason = error.strerror or str(error)
        return Finding(name, "problem", f"{place}: {reason}", "start it, or correct the address")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python,
    check_java,
    check_spark,
    check_plugins,
    check_services,
)
