"""YAML to nodes that know their place, however hostile the file: no tags, few aliases, no depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError
from streamcore.values import URL_LOGIN, is_sensitive

from ..source import Place, Source
from .errors import JobFileError

LONGEST = 1_000_000
DEEPEST = 20
MOST_ALIASES = 100
MOST_NODES = 20_000
_MERGE = "<<"


@dataclass(eq=False)
class Node:
    """A value of the file: a text, a list or a mapping; None is a key without a value."""

    value: str | list[Node] | dict[str, Node] | None = field(repr=False)
    place: Place = field(repr=False)
    key: str = ""
    key_place: Place | None = field(default=None, repr=False)
    exact: bool = False
    """Whether the text stands in the file as it is, so that places inside of it are known."""
    secret: bool = False
    unfilled: bool = False
    """Whether a variable in it is not defined, so that nobody knows what it will say."""

    @property
    def text(self) -> str:
        assert isinstance(self.value, str)
        return self.value

    @property
    def items(self) -> Sequence[Node]:
        assert isinstance(self.value, list)
        return self.value

    @property
    def members(self) -> Mapping[str, Node]:
        assert isinstance(self.value, dict)
        return self.value

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if self.value is None:
            return "nothing"
        return {str: "a text", list: "a list", dict: "a mapping"}[type(self.value)]

    def scalars(self) -> Iterator[Node]:
        """Every text below."""
        if isinstance(self.value, str):
            yield self
        elif isinstance(self.value, list):
            for item in self.value:
                yield from item.scalars()
        elif isinstance(self.value, dict):
            for member in self.value.values():
                yield from member.scalars()


def read(text: str, name: str) -> Node:
    """The root mapping of a job file; raises JobFileError for what is no YAML or not harmless."""
    plain = Source(text, name)
    if len(text) > LONGEST:
        raise JobFileError(f"the file has {len(text)} characters; {LONGEST} are allowed")
    try:
        _check_events(text, plain)
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise _told(error, plain) from None
    except ReaderError as error:
        at = min(error.position, len(text))
        trouble = f"not YAML: the character U+{ord(text[at : at + 1] or ' '):04X} is not allowed"
        raise JobFileError(trouble, Place(plain, at, at + 1), "Leave it out.") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise JobFileError(f"'{name}' is not YAML: {str(error).splitlines()[0]}") from None
    if root is None:
        raise JobFileError(f"'{name}' is empty", Place(plain, 0, 0), _SHAPE)
    node = _Reading(_without_secrets(text, root, name)).node(root)
    if not isinstance(node.value, dict):
        raise JobFileError(f"the file is {node.kind}, not a mapping", node.place, _SHAPE)
    return node


_SHAPE = "Write 'source:', 'sink:' and, where wanted, 'route:', 'transform:' and 'pipeline:'."


def _check_events(text: str, source: Source) -> None:
    """Refuse what could do harm, before anything is built from it."""
    depth = aliases = count = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        name = type(event).__name__
        place = Place(source, event.start_mark.index, event.end_mark.index)
        count += name in ("ScalarEvent", "AliasEvent")
        aliases += name == "AliasEvent"
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1
        if depth > DEEPEST:
            raise JobFileError(f"nested deeper than {DEEPEST} levels", place)
        if aliases > MOST_ALIASES:
            raise JobFileError(f"more than {MOST_ALIASES} aliases", place)
        if count > MOST_NODES:
            raise JobFileError(f"more than {MOST_NODES} values", place)
        if tag := getattr(event, "tag", None):
            trouble = f"the tag '{_short(str(tag))}' is not read: a job file holds texts only"
            raise JobFileError(trouble, place, "Leave it out.")
        if name == "DocumentStartEvent" and event.explicit and count:
            raise JobFileError("a second document begins here; a file is one job", place)


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix("tag:yaml.org,2002:") if tag.startswith("tag:yaml") else tag


def _told(error: MarkedYAMLError, source: Source) -> JobFileError:
    mark = error.problem_mark or error.context_mark
    trouble = str(error.problem or error.context or "is not YAML").replace("\n", " ")
    hint = ""
    if "alias" in (error.context or "") or "'*'" in trouble:
        hint = r"A text that starts with '*' needs quotes, or a backslash as in: projection: \*, id"
    if mark is None:
        return JobFileError(f"not YAML: {trouble}", hint=hint)
    at = min(mark.index, len(source.text))
    return JobFileError(f"not YAML: {trouble}", Place(source, at, at + 1), hint)


def _without_secrets(text: str, root: Any, name: str) -> Source:
    """The file as errors may quote it: secret values and logins starred out, nothing moved."""
    shown = list(text)
    for login in URL_LOGIN.finditer(text):
        shown[login.start() : login.end()] = "*" * len(login[0])
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if id(node) in seen or isinstance(node.value, str):
            continue
        seen.add(id(node))
        for entry in node.value:
            if not isinstance(entry, tuple):
                stack.append(entry)
                continue
            key, value = entry
            if isinstance(key.value, str) and isinstance(value.value, str):
                if is_sensitive(key.value) and "${" not in value.value:
                    start, end = value.start_mark.index, value.end_mark.index
                    shown[start:end] = ["\n" if c == "\n" else "*" for c in text[start:end]]
            else:
                stack.append(value)
    return Source("".join(shown), name)


class _Reading:
    """Composed nodes to ours; aliases stand for copies, within limits."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._count = self._depth = 0

    def node(self, raw: Any, key: Any = None) -> Node:
        self._count += 1
        place = self._place(raw)
        if self._count > MOST_NODES:
            raise JobFileError(f"its aliases stand for more than {MOST_NODES} values", place)
        if self._depth > DEEPEST:
            raise JobFileError(f"nested deeper than {DEEPEST} levels", place)
        self._depth += 1
        found = Node(None, place)
        if key is not None:
            found.key, found.key_place = str(key.value), self._place(key)
        if isinstance(raw.value, str):
            self._scalar(found, raw)
        elif raw.value and isinstance(raw.value[0], tuple):
            found.value = self._mapping(raw)
        else:
            empty = type(raw).__name__ == "MappingNode"
            found.value = {} if empty else [self.node(item) for item in raw.value]
        self._depth -= 1
        return found

    def _scalar(self, found: Node, raw: Any) -> None:
        if raw.style in (None, "") and raw.value.lower() in ("", "~", "null"):
            return
        found.value = raw.value
        if raw.style in ("'", '"'):
            found.place = Place(found.place.source, found.place.start + 1, found.place.end - 1)
        start, end = found.place.start, found.place.end
        found.exact = self._source.text[start:end] == raw.value

    def _mapping(self, raw: Any) -> dict[str, Node]:
        members: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        for key, value in raw.value:
            if not isinstance(key.value, str):
                raise JobFileError("a key must be a text", self._place(key))
            node = self.node(value, key)
            if key.value == _MERGE and key.style is None:
                merged |= self._merged(node)
            elif key.value in members:
                raise JobFileError(f"'{key.value}' is written twice", self._place(key))
            else:
                members[key.value] = node
        return {**merged, **members}

    def _merged(self, node: Node) -> dict[str, Node]:
        several = node.value if isinstance(node.value, list) else [node]
        found: dict[str, Node] = {}
        for each in reversed(several):
            if not isinstance(each.value, dict):
                raise JobFileError(f"'{_MERGE}' takes mappings", node.place)
            found |= each.value
        return found

    def _place(self, raw: Any) -> Place:
        start, end = raw.start_mark.index, raw.end_mark.index
        if not isinstance(raw.value, str) and raw.value:  # a caret under its first line is enough
            stop = self._source.text.find("\n", start)
            end = min(end, len(self._source.text) if stop < 0 else stop)
        return Place(self._source, start, end)
