"""The columns of every table a job has met, and what to do when rows bring others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamcore import Column, Table

from .errors import SchemaChanged
from .model import Behavior, ChangeType
from .routing import TableId

_FILE = "tables.json"
_TYPES = {"n": "STRING", "i": "BIGINT", "f": "DOUBLE", "b": "BOOLEAN", "s": "STRING", "j": "STRING"}
"""JSON types as SQL types; a column that was always null is a text until it is not."""


def wider(one: str, other: str) -> str:
    """The JSON type that holds values of both."""
    kinds = {one, other} - {"n"}
    if len(kinds) < 2:
        return min(kinds, default="n")
    return "f" if kinds == {"i", "f"} else "s"


def is_local(folder: str) -> bool:
    """Whether a checkpoint is a folder of this machine."""
    return "://" not in folder.removeprefix("file://")


@dataclass(frozen=True)
class Seen:
    """What one batch shows of a table: a letter and a name per column, and its key if told."""

    table: TableId
    columns: frozenset[str]
    key: tuple[str, ...] = ()

    def letters(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in sorted(self.columns):
            letter, name = each[0], each[1:]
            found[name] = wider(found.get(name, "n"), letter)
        return found


@dataclass(frozen=True)
class Shape:
    """A table as it is known: declared columns, then those that rows brought."""

    declared: Table | None = None
    inferred: Mapping[str, str] = field(default_factory=dict)
    """The JSON type of every other column, in the order of their coming."""
    key: tuple[str, ...] = ()
    left_out: bool = False
    """Whether rows have had columns that are not written."""
    refused: frozenset[str] = frozenset()
    """The columns among them that the table's transform cannot take."""

    @property
    def columns(self) -> tuple[Column, ...]:
        own = self.declared.columns if self.declared else ()
        return (*own, *(Column(name, _TYPES[kind]) for name, kind in self.inferred.items()))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


class Shapes:
    """Every table met so far; kept beside the checkpoint, so that a restart knows them."""

    def __init__(
        self,
        behavior: Behavior,
        refused: frozenset[ChangeType] = frozenset(),
        folder: str | None = None,
    ) -> None:
        self._behavior, self._refused = behavior, refused
        self._path: Path | None = None
        if folder is not None and is_local(folder):
            self._path = Path(folder.removeprefix("file://")) / _FILE
        self.known: dict[TableId, Shape] = {}
        self.topics: list[str] = []
        self.first_batch: int | None = None
        """The first batch that had anything to write."""

    def learn(self, seen: Iterable[Seen], declared: Mapping[TableId, Table]) -> list[str]:
        """Take in what a batch shows; returns what to tell, raises SchemaChanged if it must not."""
        learned = dict(self.known)
        notes: list[str] = []
        troubles: list[str] = []
        for each in sorted(seen, key=lambda each: each.table):
            before = learned.get(each.table)
            if before is None:
                table = declared.get(each.table)
                key = table.primary_key if table else ()
                own = set(table.by_name) if table else set()
                inferred = {} if own else each.letters()
                learned[each.table] = before = Shape(table, inferred, key)
            after = self._changed(each, before, notes, troubles)
            learned[each.table] = replace(after, key=after.key or each.key)
        if troubles:
            raise SchemaChanged(
                "; ".join(troubles) + f", and 'schema.change.behavior' is "
                f"'{self._behavior.value}'. Nothing of this batch was written: choose 'evolve' to "
                "write such columns, or 'ignore' to leave them out"
            )
        self.known = learned
        return notes

    def _changed(self, seen: Seen, before: Shape, notes: list[str], troubles: list[str]) -> Shape:
        inferred = dict(before.inferred)
        own = set(before.declared.by_name) if before.declared else set()
        left_out = before.left_out
        for name, letter in seen.letters().items():
            if name in own or name in before.refused:
                continue
            known = inferred.get(name)
            now = letter if known is None else wider(known, letter)
            if now == known:
                continue
            change = ChangeType.ADD_COLUMN if known is None else ChangeType.ALTER_TYPE
            what = f"table '{seen.table}' has a new column '{name}' {_TYPES[now]}"
            if known is not None:
                what = f"column '{name}' of '{seen.table}' was {_TYPES[known]}, now {_TYPES[now]}"
            if known == "n":
                inferred[name] = now
            elif change in self._refused or self._behavior is Behavior.IGNORE:
                left_out |= known is None
            elif self._behavior is Behavior.EXCEPTION:
                troubles.append(what)
            else:
                inferred[name] = now
                notes.append(what)
        return replace(before, inferred=inferred, left_out=left_out)

    def without(self, table: TableId, column: str) -> None:
        """Refuse a column that cannot be written; its values are left out from now on."""
        shape = self.known[table]
        kept = {name: kind for name, kind in shape.inferred.items() if name != column}
        refused = shape.refused | {column}
        self.known[table] = replace(shape, inferred=kept, left_out=True, refused=refused)

    # --- keeping ----------------------------------------------------------------------------

    def load(self, declared: Callable[[TableId], Table | None]) -> None:
        """Read what an earlier run of the job has met; `declared` are the columns of the file."""
        if self._path is None or not self._path.exists():
            return
        plain = json.loads(self._path.read_text(encoding="utf-8"))
        self.topics, self.first_batch = plain["topics"], plain["first_batch"]
        for name, each in plain["tables"].items():
            table = TableId.of(name)
            owner = declared(table)
            own = set(owner.by_name) if owner else set()
            inferred = {n: kind for n, kind in each["columns"].items() if n not in own}
            key = owner.primary_key if owner else tuple(each["key"])
            refused = frozenset(each.get("refused", ()))
            self.known[table] = Shape(owner, inferred, key, each["left_out"], refused)

    def save(self, topics: Sequence[str], batch: int) -> None:
        """Keep everything, before the batch that showed it is written."""
        self.topics = sorted({*self.topics, *topics})
        if self.topics and self.first_batch is None:
            self.first_batch = batch
        if self._path is None:
            return
        tables = {
            str(table): {
                "columns": dict(shape.inferred),
                "key": list(shape.key),
                "left_out": shape.left_out,
                "refused": sorted(shape.refused),
            }
            for table, shape in self.known.items()
        }
        plain = {"topics": self.topics, "first_batch": self.first_batch, "tables": tables}
        text = json.dumps(plain, indent=1) + "\n"
        if self._path.exists() and self._path.read_text(encoding="utf-8") == text:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_name(f".{_FILE}.draft")
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, self._path)
