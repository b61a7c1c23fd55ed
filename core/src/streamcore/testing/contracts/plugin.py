"""What holds for a plugin of any kind."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Collection
from typing import Any, ClassVar

import pytest

from ...claims import is_identifier
from ...errors import OptionError
from ...filling import build
from ...options import Declared, declared
from ...registry import installed
from ...values import Secret, is_sensitive, parse

CANARY = "canary-4f1d"
_WATCH_IMPORTS = """
import importlib, sys
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
"""


class PluginContract:
    """Tests for a plugin of any kind; prefer the contract of its kind.

    class TestMine(PluginContract):
        plugin = Mine(required="value")
    """

    plugin: ClassVar[Any]
    """The plugin under test, configured."""
    may_import: ClassVar[Collection[str]] = ()
    """Packages that importing the plugin may load: small ones, and never a client library."""

    @property
    def options(self) -> list[Declared]:
        return list(declared(type(self.plugin)))

    def test_its_identifier_is_lower_case_words(self) -> None:
        assert is_identifier(self.plugin.identifier)

    def test_it_says_what_it_is(self) -> None:
        doc = (type(self.plugin).__doc__ or "").strip()
        own = "__doc__" in vars(type(self.plugin)) and not doc.startswith(
            type(self.plugin).__name__
        )
        assert own, "the class needs a docstring: it becomes its documentation"
        assert doc.partition("\n\n")[0].endswith("."), "the docstring should be a sentence"

    def test_every_option_is_documented_by_a_sentence(self) -> None:
        for each in self.options:
            doc = each.spec.doc
            assert doc.endswith("."), f"{each.spec.key}: end the doc with a full stop"
            assert not doc[0].islower(), f"{each.spec.key}: begin the doc like a sentence"

    def test_no_key_is_declared_twice(self) -> None:
        keys = [key.lower() for each in self.options for key in (each.spec.key, *each.spec.also)]
        assert sorted(keys) == sorted(set(keys)), "two options read the same key"

    def test_every_default_can_be_written_by_a_user(self) -> None:
        for each in self.options:
            text = each.default_text()
            assert not (each.hint is Secret and text), f"{each.spec.key}: no default secrets"
            if text and not each.names_a_plugin:
                assert parse(each.hint, text) == each.default, f"{each.spec.key} = '{text}'"

    def test_options_that_look_secret_are_secrets(self) -> None:
        for each in self.options:
            if not each.is_map and is_sensitive(each.spec.key):
                assert each.hint is Secret, f"{each.spec.key}: declare it as Secret"

    def test_it_hides_its_secrets(self) -> None:
        for each in self.options:
            if each.hint is Secret:
                holder = dataclasses.replace(self.plugin, **{each.name: Secret(CANARY)})
                for text in (repr(holder), str(holder), f"{holder}"):
                    assert CANARY not in text, each.spec.key
                self._assert_errors_hide(each.spec.key)

    def _assert_errors_hide(self, key: str) -> None:
        with pytest.raises(OptionError) as error:
            build(type(self.plugin), {key: CANARY, "no-such-option": ""}, installed().find)
        assert CANARY not in str(error.value), key

    def test_it_refuses_what_it_does_not_know(self) -> None:
        with pytest.raises(OptionError, match="no-such-option: unknown option"):
            build(type(self.plugin), {"no-such-option": "1"}, installed().find)

    def test_its_options_are_fine_together(self) -> None:
        assert list(self.plugin.problems()) == []

    def test_it_survives_the_trip_to_a_worker(self) -> None:
        assert pickle.loads(pickle.dumps(self.plugin)) == self.plugin  # noqa: S301 - our own bytes

    def test_importing_it_is_cheap(self) -> None:
        package = type(self.plugin).__module__.partition(".")[0]
        done = subprocess.run(
            [sys.executable, "-c", _WATCH_IMPORTS, package],
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
        )
        assert done.returncode == 0, done.stderr
        cheap = {"streamcore", "pluggy", "packaging", package, *self.may_import}
        heavy = {
            name
            for name in done.stdout.split()
            if name not in cheap
            and name not in sys.stdlib_module_names
            and not name.startswith(("_", "streamcore_"))
        }
        assert not heavy, f"import {', '.join(sorted(heavy))} inside the method that needs it"


def _environment() -> dict[str, str]:
    """This environment, with the test's own import path, so that it need not be installed."""
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
