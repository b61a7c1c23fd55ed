"""What was typed before, kept between sessions; statements with secrets are forgotten."""

from __future__ import annotations

from pathlib import Path

from prompt_toolkit.history import FileHistory

from ..masking import secrets_in


class DiscreetHistory(FileHistory):
    """A history file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        super().__init__(str(path))

    def store_string(self, string: str) -> None:
        if not secrets_in(string):
            super().store_string(string)
