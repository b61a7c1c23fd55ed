"""The line editor: history, completion, colours, and statements over several lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from ..catalog import Catalog
from .backslash import is_open
from .completion import SqlCompleter
from .history import DiscreetHistory


def prompt_session(catalog: Catalog, history: Path, **more: Any) -> PromptSession[str]:
    """A prompt that gives back one whole statement, or one command."""
    session: PromptSession[str] = PromptSession(
        "streamcore> ",
        completer=SqlCompleter(catalog),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        history=DiscreetHistory(history),
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "       ... ".rjust(width),
        key_bindings=_bindings(),
        enable_history_search=True,
        **more,
    )
    return session


def is_complete(text: str) -> bool:
    """Whether Enter should run a text: a command, nothing at all, or a statement that is closed."""
    text = text.strip()
    if not text or text.startswith("\\"):
        return True
    return not is_open(text)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @Condition
    def finished() -> bool:
        from prompt_toolkit.application import get_app

        buffer = get_app().current_buffer
        return is_complete(buffer.text) and buffer.document.is_cursor_at_the_end

    @bindings.add("enter", filter=finished)
    def _accept(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def _newline(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return bindings
