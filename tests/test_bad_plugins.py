"""Ten distributions that misbehave in every way we know of: the others work, and each is named."""

import json
import os
import subprocess
import sys
import time

import pytest

FORMAT = '''
from streamcore import Format, hookimpl

class Made(Format):
    """Made."""
    identifier = "{identifier}"

@hookimpl
def register_formats():
    return [Made]
'''
BAD = {
    "raises": "raise RuntimeError('no licence found')",
    "leaves": "import sys; sys.exit('go away')",
    "hangs": "import time; time.sleep(60)",
    "loops": "while True: pass",
    "no-such-hook": FORMAT.format(identifier="x").replace("register_formats", "register_format"),
    "no-hook": "answer = 42",
    "no-class": FORMAT.format(identifier="x").replace("[Made]", "[42]"),
    "claims-json": FORMAT.format(identifier="json"),
    "upper-case": FORMAT.format(identifier="Json"),
    "cyrillic": FORMAT.format(identifier="jsоn"),  # noqa: RUF001 - that is the attack
    "recursive": "def f(): f()\nf()",
    "tomorrow": FORMAT.format(identifier="y"),
}
GOOD = {
    "fine": FORMAT.format(identifier="fine"),
    "also-fine": FORMAT.format(identifier="also-fine"),
}
PROMISE = 5.0
START = 3.0  # of the interpreter itself, on a busy machine


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    for name, source in {**BAD, **GOOD}.items():
        _install(site, name, source)
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "STREAMCORE_ALLOW": ",".join(
            [f"acme-{name}" for name in BAD | GOOD] + ["streamcore-formats"]
        ),
    }
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "streamcore.cli", "list-plugins", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    elapsed = time.monotonic() - started
    rows = {
        row["distribution"]: row for row in json.loads(done.stdout) if "acme" in row["distribution"]
    }
    return done.returncode, rows, elapsed, done.stderr


def _install(site, name, source):
    module = "acme_" + name.replace("-", "_")
    (site / f"{module}.py").write_text(source, encoding="utf-8")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    core = "9" if name == "tomorrow" else "0.1"
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: 1.0\n"
        f"Requires-Dist: streamcore>={core}\n"
    )
    (info / "entry_points.txt").write_text(f"[streamcore]\n{name} = {module}\n")


def test_the_others_work(listed):
    status, rows, _, _ = listed
    assert status == 1
    assert {rows[f"acme-{name}"]["status"] for name in GOOD} == {"active"}


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("raises", "broken", "RuntimeError: no licence found"),
        ("leaves", "broken", "called sys.exit('go away')"),
        ("hangs", "broken", "did not load within 4.5 s"),
        ("loops", "broken", "did not load within 4.5 s"),
        ("no-such-hook", "broken", "unknown hook 'register_format'"),
        ("no-hook", "broken", "implements no hook; is @hookimpl missing?"),
        ("no-class", "broken", "register_formats returned int, which is not a Format class"),
        ("claims-json", "shadowed", "streamcore-formats "),
        (
            "upper-case",
            "broken",
            "identifier 'Json' is not lower-case ASCII words joined by '-'; it",
        ),
        ("cyrillic", "broken", "identifier 'jsоn' is not lower-case ASCII"),  # noqa: RUF001
        ("recursive", "broken", "RecursionError: maximum recursion depth exceeded"),
        ("tomorrow", "incompatible", "needs streamcore>=9, this is streamcore "),
    ],
)
def test_each_is_named_with_its_reason(listed, name, status, reason):
    row = listed[1][f"acme-{name}"]
    assert row["status"] == status
    assert row["reason"].startswith(reason)


def test_the_owner_of_a_name_keeps_it_and_look_alikes_are_flagged(listed):
    _, rows, _, said = listed
    assert "format 'json' is claimed by streamcore-formats " in said
    for name in ("upper-case", "cyrillic"):
        assert "it looks like 'json' of streamcore-formats" in rows[f"acme-{name}"]["reason"]


def test_those_that_hang_are_named_within_five_seconds(listed):
    _, rows, elapsed, _ = listed
    assert elapsed < PROMISE + 1 + START  # a second more, because there are two of them
    assert rows["acme-hangs"]["status"] == "broken"
