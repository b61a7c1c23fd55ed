"""A reading head over tokens: look ahead, accept, expect, and say what was expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from .errors import SqlError, did_you_mean
from .lexer import Kind, Token, name_value, text_value, tokens
from .source import NOWHERE, Place, Source

T = TypeVar("T")
_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = {close: opener for opener, close in _OPENERS.items()}


@dataclass(frozen=True)
class SqlText:
    """A query or expression, exactly as written."""

    text: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


class Cursor:
    """Reads a script token by token; never holds more than the statement at hand."""

    def __init__(self, source: Source, start: int = 0, end: int | None = None) -> None:
        self.source = source
        last = len(source.text) if end is None else end
        self._end = Token(Kind.END, "", last, last)
        self._more = tokens(source, start, end)
        self._ahead: list[Token] = []
        self._at = 0
        self.previous = Token(Kind.SYMBOL, "", start, start)

    @property
    def token(self) -> Token:
        return self.peek(0)

    def peek(self, distance: int) -> Token:
        while len(self._ahead) <= self._at + distance:
            if self._ahead and self._ahead[-1].kind is Kind.END:
                return self._ahead[-1]
            # After text that is never closed nothing can be read: the lexer is at its end.
            self._ahead.append(next(self._more, self._end))
        return self._ahead[self._at + distance]

    def advance(self) -> Token:
        token = self.peek(0)
        if token.kind is not Kind.END:
            self._at += 1
            self.previous = token
        return token

    def _next(self) -> Token:
        """Advance and return the new token; drops the old ones, for queries as long as a script."""
        self.previous = self._ahead[self._at]
        self._at += 1
        if self._at == len(self._ahead):
            self._ahead = [next(self._more, self._end)]
            self._at = 0
        return self._ahead[self._at]

    def forget(self) -> None:
        """Drop what was read: called between statements, so that memory stays flat."""
        del self._ahead[: self._at]
        self._at = 0

    def skip_statement(self) -> None:
        """Go behind the next `;`, to carry on after a mistake."""
        while not self.at_end() and self.advance().word != ";":
            pass

    # --- where -------------------------------------------------------------------

    def text(self, token: Token) -> str:
        return self.source.text[token.start : token.end]

    def place(self, token: Token) -> Place:
        return Place(self.source, token.start, token.end)

    def since(self, first: Token) -> Place:
        """From `first` to the last token read."""
        return Place(self.source, first.start, max(self.previous.end, first.start))

    def at_end(self) -> bool:
        """Whether the script is over."""
        return self.token.kind is Kind.END

    def at_statement_end(self) -> bool:
        return self.at_end() or self.token.word == ";"

    # --- words -------------------------------------------------------------------

    def at(self, *words: str) -> bool:
        return all(self.peek(index).word == word for index, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        if not self.at(*words):
            return False
        for _ in words:
            self.advance()
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                self.fail(f"'{word}'", words=(word,))

    def one_of(self, *words: str) -> str:
        if self.token.word not in words:
            shown = [f"'{word}'" for word in words]
            self.fail(" or ".join([", ".join(shown[:-1]), shown[-1]][-len(shown) :]), words=words)
        return self.advance().word

    def fail(self, expected: str, *, words: Sequence[str] = (), hint: str = "") -> NoReturn:
        token = self.token
        if self.at_statement_end():
            found = "the statement ends"
            last = self.previous
            place = Place(self.source, last.end, last.end)
        elif token.kind is Kind.STRING:  # it may be a secret: the caret shows it, masked
            found, place = "found a text", self.place(token)
        else:
            found = f"found '{self.source.quote(token.start, token.end)}'"
            place = self.place(token)
        if not hint and token.kind is Kind.WORD:
            hint = did_you_mean(token.word, words)
        raise SqlError(f"expected {expected}, but {found}", place, hint)

    # --- names and values ----------------------------------------------------------

    def identifier(self, what: str = "a name") -> str:
        token = self.token
        if token.kind is Kind.QUOTED:
            return name_value(self.text(self.advance()))
        if token.kind is Kind.WORD:
            return self.text(self.advance())
        self.fail(what)

    def string(self, what: str = "a text in single quotes") -> str:
        if self.token.kind is not Kind.STRING:
            self.fail(what)
        return text_value(self.text(self.advance()))

    def integer(self, what: str = "a whole number") -> int:
        if self.token.kind is not Kind.NUMBER or not self.text(self.token).isdecimal():
            self.fail(what)
        return int(self.text(self.advance()))

    def listed(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Read `( item, item, ... )`, with at least one item."""
        self.expect("(")
        items = [read()]
        while not self.accept(")"):
            if not self.accept(","):
                self.fail("',' or ')'")
            items.append(read())
        return tuple(items)

    # --- verbatim --------------------------------------------------------------------

    def verbatim(self, what: str, *, stops: Sequence[str] = (), query: bool = False) -> SqlText:
        """Read source text up to a `;`, to one of `stops`, or to the `)` that closes around it.

        A stop is one or more words. An expression also ends at a comma; a query does not.
        """
        ends = {stop.split()[0]: stop.split() for stop in stops}
        first = token = self.token
        opened: list[Token] = []
        while token.kind is not Kind.END and token.word != ";":
            word = token.word
            if word in _OPENERS:
                opened.append(token)
            elif not opened:
                if word in _CLOSERS or (word == "," and not query):
                    break
                if word in ends and self.at(*ends[word]):
                    break
            elif word in _CLOSERS:
                if opened[-1].word != _CLOSERS[word]:
                    self.fail(f"'{_OPENERS[opened[-1].word]}'")
                opened.pop()
            token = self._next()
        if opened:
            close = _OPENERS[opened[-1].word]
            trouble = f"'{opened[-1].word}' is never closed"
            raise SqlError(trouble, self.place(opened[-1]), f"Close it with '{close}'.")
        if self.token is first:
            self.fail(what)
        place = self.since(first)
        return SqlText(self.source.text[place.start : place.end], place)
