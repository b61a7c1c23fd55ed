"""Reading the parts of a file: texts, choices, lists and options, with every mistake kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from streamcore.values import looks_like, parse

from ..errors import did_you_mean
from .document import Node
from .errors import Problems

C = TypeVar("C", bound=Enum)


class Section:
    """A mapping of the file, read key by key; what nobody reads is a mistake."""

    def __init__(self, node: Node, label: str, problems: Problems) -> None:
        self.node, self.label, self._problems = node, label, problems
        self.members: Mapping[str, Node] = {}
        if isinstance(node.value, dict):
            self.members = node.members
        else:
            problems.add(f"{label}: expected a mapping, found {node.kind}", node, key=True)
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def node_of(self, key: str) -> Node | None:
        """The node under a key, if it is there."""
        self._read.add(key)
        return self.members.get(key)

    def text(self, key: str, *, required: str = "") -> str:
        """A text; `required` says what it is for, if it must be there."""
        node = self.text_node(key, required=required)
        return node.text if node else ""

    def text_node(self, key: str, *, required: str = "") -> Node | None:
        """The node of a text, if there is one."""
        node = self.node_of(key)
        if node is None:
            if required and isinstance(self.node.value, dict):
                trouble = f"{self.label}: '{key}' is missing ({required})"
                near = did_you_mean(key, self.members.keys() - self._read)
                hint = near.replace("Did you mean", "Is it meant by")
                self._problems.add(trouble, self.node, hint, key=True)
            return None
        if required and node.value == "":
            self._problems.add(f"{self.label}: '{key}' is empty ({required})", node, key=True)
            return None
        return node if self.is_text(node, key) else None

    def is_text(self, node: Node, key: str) -> bool:
        """Whether a node is a text; complains if not."""
        if isinstance(node.value, str):
            return True
        self._problems.add(
            f"{self.label}: {key}: expected a text, found {node.kind}", node, key=True
        )
        return False

    def choice(self, key: str, hint: type[C], default: C) -> C:
        """One of an enum's values, in any case."""
        found: C = self.value(key, hint, default)
        return found

    def value(self, key: str, hint: Any, default: Any) -> Any:
        """A number, a truth value or a choice."""
        node = self.text_node(key)
        if node is None:
            return default
        try:
            return parse(hint, node.text)
        except (ValueError, KeyError):
            near = did_you_mean(node.text, [e.value for e in hint] if _is_enum(hint) else ())
            trouble = f"{self.label}: {key}: '{node.text}' is not {looks_like(hint)}"
            self._problems.add(trouble, node, near)
            return default

    def names(self, key: str) -> tuple[str, ...]:
        """Names separated by commas, or a list of them."""
        node = self.node_of(key)
        if node is None:
            return ()
        items = node.items if isinstance(node.value, list) else [node]
        texts = [each.text for each in items if self.is_text(each, key)]
        return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())

    def sections(self, key: str) -> Iterator[Section]:
        """A list of mappings."""
        node = self.node_of(key)
        if node is None:
            return
        label = f"{self.label}: {key}" if self.label else key
        if not isinstance(node.value, list):
            hint = "Start each entry with '- '."
            self._problems.add(f"{label}: expected a list, found {node.kind}", node, hint, key=True)
            return
        for number, item in enumerate(node.items, 1):
            yield Section(item, f"{label}[{number}]", self._problems)

    def options(self) -> tuple[dict[str, str], dict[str, Node]]:
        """Every key that nobody has read, as flat texts: what a connector is given.

        A mapping stands for keys with a common beginning, a list for values separated by ';'.
        """
        texts: dict[str, str] = {}
        nodes: dict[str, Node] = {}
        for key, node in self.members.items():
            if key not in self._read:
                for flat, text, at in self._flat(key, node):
                    texts[flat], nodes[flat] = text, at
        self._read |= set(self.members)
        return texts, nodes

    def _flat(self, key: str, node: Node) -> Iterator[tuple[str, str, Node]]:
        if isinstance(node.value, dict):
            for inner, member in node.members.items():
                yield from self._flat(f"{key}.{inner}", member)
        elif isinstance(node.value, list):
            texts = [each.text for each in node.items if self.is_text(each, key)]
            yield key, ";".join(texts), node
        elif self.is_text(node, key):
            yield key, node.text, node

    def end(self, known: Sequence[str] = ()) -> None:
        """Complain about what is left over."""
        names = [*known, *(key for key in self._read if key not in known)]
        for key, node in self.members.items():
            if key not in self._read:
                self._problems.unknown(f"{self.label}: unknown key '{key}'", node, sorted(names))

    def check(self, key: str, complaint: Callable[[str], str | None]) -> None:
        """Add what a check of a text has to say."""
        node = self.members.get(key)
        if node is not None and isinstance(node.value, str) and (said := complaint(node.text)):
            self._problems.add(f"{self.label}: {key}: {said}", node)


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)
