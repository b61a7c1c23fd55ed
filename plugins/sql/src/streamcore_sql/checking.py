"""What `streamcore check` finds out about each statement of a script, without running any."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from streamcore import StreamcoreError

from .errors import SqlError
from .launching import MovesRows
from .online import Question
from .parity import differences
from .planner.binding import Bound, bind
from .reading import inserts_of
from .session import Session
from .statements import CreateTable, Name, Statement, needs_spark

Verdict = Literal["same", "differs", "unsupported", "wrong"]
_UNSUPPORTED = re.compile(
    r"not supported|Spark cannot|Spark needs|Spark's|stream cannot|on a stream|no counterpart"
    r"|cannot take|only takes inserts|temporal join takes"
)


@dataclass(frozen=True)
class Finding:
    """One statement: as in Flink, different, not possible, or simply wrong."""

    line: int
    statement: str
    verdict: Verdict
    details: tuple[str, ...] = ()
    online: tuple[str, ...] = ()
    """What the systems behind its tables said, where they were asked."""

    @property
    def is_fine(self) -> bool:
        return self.verdict in ("same", "differs")


@dataclass
class Checker:
    """Checks scripts in a session that keeps and starts nothing."""

    session: Session
    online: bool = False
    start_spark: Callable[[], object] = lambda: None
    """Called before the first statement that Spark must look at."""
    _started: bool = False
    _asked: dict[tuple[Name, bool], Question] = field(default_factory=dict)
    _told_of: set[tuple[Name, bool]] = field(default_factory=set)
    _answers: list[str] = field(default_factory=list)
    _sinks: set[Name] = field(default_factory=set)
    _first: dict[str, int] = field(default_factory=dict)
    """Problems by their text, and the lines of the statements they were first told of."""

    def check(self, text: str, name: str) -> Iterator[Finding]:
        """One finding per statement, or one per mistake if the script cannot be read."""
        try:
            statements = self.session.parse(text, name)
        except SqlError as error:
            for problem in error.problems:
                yield Finding(problem.line, "", _verdict(problem), (str(problem),))
            return
        self._sinks |= {insert.table for each in statements for insert in inserts_of(each)}
        if self.online:
            self._ask_ahead(statements)
        for statement in statements:
            yield self._check(statement)

    def _check(self, statement: Statement) -> Finding:
        label = " ".join(statement.place.text.split())
        label = label if len(label) <= 60 else label[:57] + "..."
        line = statement.place.line
        self._answers.clear()
        try:
            notes = [*differences(statement), *self._try(statement)]
        except SqlError as error:
            problems = dict.fromkeys(self._told(problem, line) for problem in error.problems)
            return Finding(line, label, _verdict(error), tuple(problems))
        except StreamcoreError as error:
            return Finding(line, label, "wrong", (str(error),))
        notes = list(dict.fromkeys(notes))
        verdict: Verdict = "differs" if notes else "same"
        return Finding(line, label, verdict, tuple(notes), tuple(self._answers))

    def _told(self, problem: SqlError, line: int) -> str:
        """The problem in full, or if it was: where, for a table is as wrong as each use of it."""
        text = str(problem)
        first = self._first.setdefault(text, line)
        return text if first == line else f"what was told of line {first} is in its way"

    def _try(self, statement: Statement) -> Iterator[str]:
        if needs_spark(statement) and not self._started:
            self.session.look_at(statement)
            self._started = True
            self.start_spark()
        planned = self.session.prepare(statement)
        if planned is None:
            self.session.run_statement(statement)
            if isinstance(statement, CreateTable) and statement.like is None:
                yield from self._options(statement)
            return
        yield from getattr(planned, "notes", ())
        if self.online and isinstance(planned, MovesRows):
            self._ask_all(planned)

    def _options(self, statement: CreateTable) -> Iterator[str]:
        """Options are checked where a table is used; here they are looked at even if it is not."""
        if any(option.key == "connector" for option in statement.options):
            bound = bind(statement)
            yield from bound.notes
            if self.online:
                self._ask(bound, writing=statement.name in self._sinks)

    def _ask_all(self, planned: MovesRows) -> None:
        for bound in planned.read:
            self._ask(bound, writing=False)
        for bound in planned.written:
            self._ask(bound, writing=True)

    def _ask_ahead(self, statements: Sequence[Statement]) -> None:
        """Ask for all tables at once: a system that is away takes half a minute to be given up."""
        for statement in statements:
            if isinstance(statement, CreateTable) and statement.like is None:
                with contextlib.suppress(StreamcoreError):  # told when it is the table's turn
                    self._question(bind(statement), writing=statement.name in self._sinks)

    def _ask(self, bound: Bound, *, writing: bool) -> None:
        asked = (bound.statement.name, writing)
        if asked not in self._told_of:
            self._told_of.add(asked)
            self._answers.append(self._question(bound, writing=writing).answer())

    def _question(self, bound: Bound, *, writing: bool) -> Question:
        asked = (bound.statement.name, writing)
        if asked not in self._asked:
            self._asked[asked] = Question(bound, writing=writing)
        return self._asked[asked]


def _verdict(error: SqlError) -> Verdict:
    return "unsupported" if _UNSUPPORTED.search(error.trouble) else "wrong"
