"""Downloads are whole or done again, go on after a break, and are made once."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import pytest
from streamcore.testing.services import ServiceError
from streamcore.testing.services.downloads import Package, cache, is_whole


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_CACHE", str(tmp_path))
    return tmp_path


def write(target: Path, scratch: Path) -> None:
    (target / "a.jar").write_bytes(b"content")


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("STREAMCORE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache() == tmp_path / "xdg" / "streamcore"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache() == Path.home() / ".cache" / "streamcore"


def test_a_damaged_file_is_noticed_and_fetched_again():
    package = Package("p-1", write)
    home = package.path()
    (home / "a.jar").write_bytes(b"CONTENT")
    assert is_whole(home)
    assert not is_whole(home, thorough=True)
    (home / "a.jar").write_bytes(b"short")
    assert not is_whole(home)
    assert (package.path() / "a.jar").read_bytes() == b"content"


def test_a_broken_download_goes_on_where_it_stopped(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    fetched = []

    def fill(target, scratch):
        for name in ("one", "two"):
            if not (scratch / name).exists():
                fetched.append(name)
                (scratch / name).touch()
                if len(fetched) == 1:
                    raise ConnectionError("cut")
        write(target, scratch)

    home = Package("p-2", fill).path()
    assert fetched == ["one", "two"]
    assert sorted(path.name for path in home.parent.iterdir()) == ["p-2", "p-2.lock"]


def test_a_download_that_never_works_says_why_and_leaves_nothing_half_done(monkeypatch, own_cache):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)

    def fill(target, scratch):
        (target / "half").touch()
        raise ConnectionError("no route")

    with pytest.raises(ServiceError, match=r"p-3 could not be downloaded: no route"):
        Package("p-3", fill).path()
    assert not (own_cache / "p-3").exists()


def slowly(target: Path, scratch: Path) -> None:
    with (cache() / "times").open("a") as times:
        times.write("x")
    time.sleep(0.3)
    write(target, scratch)


def race() -> None:
    Package("p-4", slowly).path()


def test_racing_processes_download_once(own_cache):
    context = multiprocessing.get_context("fork")
    racers = [context.Process(target=race) for _ in range(3)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(20)
    assert [racer.exitcode for racer in racers] == [0, 0, 0]
    assert (own_cache / "times").read_text() == "x"
