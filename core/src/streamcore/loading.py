"""Loads plugins one by one, so that none can take the others down, whatever it does at import."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import pluggy

from . import hookspecs
from .errors import PluginError

GROUP = "streamcore"
LOAD_SECONDS = 4.5
"""How long a plugin may take to load; it is named within 5 s if it hangs."""
_PATIENCE = 0.5  # then the next plugin starts, and is waited for half as long

T = TypeVar("T")
Offers = list[tuple[str, Any]]


def load_seconds() -> float:
    """How long a plugin may take here."""
    text = os.environ.get("STREAMCORE_LOAD_SECONDS") or str(LOAD_SECONDS)
    try:
        return float(text)
    except ValueError:
        raise PluginError(
            f"STREAMCORE_LOAD_SECONDS: '{text}' is not a number of seconds, such as 10."
        ) from None


class Attempt(Generic[T]):
    """A call in a thread of its own, because nothing else can be left when it hangs."""

    def __init__(self, work: Callable[[], T], seconds: float) -> None:
        self._work, self._seconds = work, seconds
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._deadline = time.monotonic() + seconds
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_done_within(self, patience: float) -> bool:
        """Wait a while for the call, and tell whether it has ended."""
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._values.append(self._work())
        except BaseException as error:  # even sys.exit; handed to whoever asks for the outcome
            self._error = error

    def outcome(self) -> T:
        """Return what the call returned, or raise a PluginError that says why it did not."""
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        if self._thread.is_alive():
            raise PluginError(
                f"did not load within {self._seconds:g} s; "
                "if it is slow and does not hang, raise STREAMCORE_LOAD_SECONDS"
            )
        if isinstance(self._error, KeyboardInterrupt):
            raise self._error
        if self._error is not None:
            raise PluginError(_reason(self._error)) from self._error
        return self._values[0]


def _reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"called sys.exit({error.code!r})"
    if isinstance(error, PluginError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def attempt_all(works: Sequence[Callable[[], T]]) -> list[T | PluginError]:
    """Make every call, and give back for each what it returned or why it failed."""
    seconds, patience = load_seconds(), _PATIENCE
    attempts: list[Attempt[T]] = []
    outcomes: list[T | PluginError] = []
    with contextlib.redirect_stdout(sys.stderr):  # what plugins print is no part of our output
        for work in works:
            attempts.append(Attempt(work, seconds))
            if not attempts[-1].is_done_within(patience):
                patience /= 2  # so that many that hang cost little more than one
        for attempt in attempts:
            try:
                outcomes.append(attempt.outcome())
            except PluginError as error:
                outcomes.append(error)
    return outcomes


def offers(load: Callable[[], Any], late: str) -> tuple[Offers, Callable[..., Any] | None]:
    """Load a plugin module and collect what its hooks return.

    The hook called `late` is not called but given back, for the one caller who needs it.
    """
    manager = pluggy.PluginManager(GROUP)  # one each: what one plugin does wrong stays with it
    manager.add_hookspecs(hookspecs)
    module = load()
    manager.register(module, "plugin")
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hook = re.search(r"unknown hook '(\w+)'", str(error))
        raise PluginError(f"unknown hook '{hook[1]}'" if hook else str(error)) from error
    found: Offers = []
    postponed: Callable[..., Any] | None = None
    callers = manager.get_hookcallers(module) or []
    for caller in callers:
        for impl in caller.get_hookimpls():
            if caller.name == late:
                postponed = impl.function
            else:
                found.extend((caller.name, offer) for offer in returned(caller.name, impl.function))
    if not callers:
        raise PluginError("implements no hook; is @hookimpl missing?")
    return found, postponed


def returned(hook: str, function: Callable[..., Any]) -> list[Any]:
    """Call one hook of one plugin."""
    result = function()
    if isinstance(result, Iterable) and not isinstance(result, type):
        return list(result)
    raise PluginError(f"{hook} returned {type(result).__name__}, not a list")
