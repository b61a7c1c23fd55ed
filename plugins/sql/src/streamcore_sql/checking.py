"""What `streamcore check` finds out about each statement of a script, without running any."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from streamcore import StreamcoreError

from .errors import SqlError
from .parity import differences
from .planner.binding import bind
from .session import Session
from .statements import CreateTable, Insert, Name, Statement, StatementSet

Verdict = Literal["same", "differs", "unsupported", "wrong"]
_UNSUPPORTED = re.compile(
    r"not supported|Spark cannot|Spark needs|Spark's|stream cannot|on a stream|no counterpart"
    r"|cannot take|only takes inserts"
)


@dataclass(frozen=True)
class Finding:
    """One statement: as in Flink, different, not possible, or simply wrong."""

    line: int
    statement: str
    verdict: Verdict
    details: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        return self.verdict in ("same", "differs")


@dataclass
class Checker:
    """Checks scripts in a session that keeps and starts nothing."""

    session: Session
    online: bool = False
    _asked: set[Name] = field(default_factory=set)

    def check(self, text: str, name: str) -> Iterator[Finding]:
        """One finding per statement, or one per mistake if the script cannot be read."""
        try:
            statements = self.session.parse(text, name)
        except SqlError as error:
            for problem in error.problems:
                yield Finding(problem.line, "", _verdict(problem), (str(problem),))
            return
        for statement in statements:
            yield self._check(statement)

    def _check(self, statement: Statement) -> Finding:
        label = " ".join(statement.place.text.split())
        label = label if len(label) <= 60 else label[:57] + "..."
        line = statement.place.line
        try:
            notes = [*differences(statement), *self._try(statement)]
        except SqlError as error:
            problems = tuple(str(problem) for problem in error.problems)
            return Finding(line, label, _verdict(error), problems)
        except StreamcoreError as error:
            return Finding(line, label, "wrong", (str(error),))
        notes = list(dict.fromkeys(notes))
        return Finding(line, label, "differs" if notes else "same", tuple(notes))

    def _try(self, statement: Statement) -> Iterator[str]:
        planned = self.session.prepare(statement)
        if planned is None:
            self.session.run_statement(statement)
            if isinstance(statement, CreateTable) and statement.like is None:
                yield from self._options(statement)
            return
        yield from getattr(planned, "notes", ())
        if self.online and isinstance(statement, (Insert, StatementSet)):
            self._ask(planned)

    def _options(self, statement: CreateTable) -> Iterator[str]:
        """Options are checked where a table is used; here they are looked at even if it is not."""
        if any(option.key == "connector" for option in statement.options):
            yield from bind(statement).notes

    def _ask(self, planned: object) -> None:
        from .online import ask

        plans = getattr(planned, "plans", None) or [getattr(planned, "plan", None)]
        for plan in plans:
            if plan is None:
                continue
            for bound in (*(read.bound for read in plan.query.scans), plan.sink):
                if bound.statement.name not in self._asked:
                    self._asked.add(bound.statement.name)
                    ask(bound)


def _verdict(error: SqlError) -> Verdict:
    return "unsupported" if _UNSUPPORTED.search(error.trouble) else "wrong"
