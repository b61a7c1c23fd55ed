"""Everything streamcore raises or warns about on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple


class Problem(NamedTuple):
    """One complaint about a table: which option or column it is about, and what is wrong."""

    key: str
    trouble: str

    def __str__(self) -> str:
        return f"{self.key}: {self.trouble}" if self.key else self.trouble


class StreamcoreError(Exception):
    """Base of all errors meant to be read by a user rather than a developer."""

    exit_code: ClassVar[int] = 1
    """What a command that ends with this error returns: 1, or 2 where the input is to blame."""


class OptionError(StreamcoreError, ValueError):
    """The options of a table do not fit the plugin they configure; lists every problem."""

    exit_code = 2

    def __init__(self, subject: str, problems: Iterable[Problem | str], hint: str = "") -> None:
        self.subject, self.hint = subject, hint
        self.problems = [p if isinstance(p, Problem) else Problem("", p) for p in problems]
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"{subject} has {count}:", *(f"  {problem}" for problem in self.problems), hint]
        super().__init__("\n".join(line for line in lines if line))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.subject, self.problems, self.hint)


class PluginError(StreamcoreError, LookupError):
    """A plugin is missing, broken, or cannot do what was asked of it."""

    exit_code = 2


class RecordError(StreamcoreError, ValueError):
    """One record could not be decoded or encoded."""


class DataLossError(StreamcoreError):
    """Records the job still needed are gone from the system it reads."""


class ConnectionFailed(StreamcoreError):  # noqa: N818 - says what happened, like its siblings read
    """A system did not answer, or refused us."""


class ClashWarning(UserWarning):
    """Two distributions claim one identifier."""


class OptionWarning(UserWarning):
    """An option is deprecated, or accepted without effect."""
