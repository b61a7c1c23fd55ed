"""Commands that begin with a backslash: what each does, at the prompt and in a text piped in."""

from __future__ import annotations

from streamcore import StreamcoreError

from ..errors import SqlError
from ..lexer import tokens
from ..source import Source

HELP = """\
End a statement with ; and press Enter. An unfinished one goes on in the next line.

  \\tables            the tables of this database    (SHOW TABLES)
  \\describe TABLE    the columns of a table         (DESCRIBE TABLE)
  \\jobs              what runs                      (SHOW JOBS)
  \\clear             an empty screen
  \\help              this text
  \\quit              leave; running jobs are stopped (also Ctrl-D)

Tab completes keywords, tables, columns, and the options of CREATE TABLE.
Up and Ctrl-R find what was typed before. Ctrl-C drops the line.
A SELECT on a stream shows its result as it changes: q leaves it.
SET 'sql-client.execution.result-mode' = 'changelog' shows every change instead.
"""
_STATEMENTS = {"\\tables": "SHOW TABLES", "\\jobs": "SHOW JOBS", "\\describe": "DESCRIBE {}"}
_TYPED_IN_FLINK = {"QUIT": "\\quit", "EXIT": "\\quit", "HELP": "\\help", "CLEAR": "\\clear"}
_SHORT = {"\\q": "\\quit"}


class NoCommand(StreamcoreError):  # noqa: N818 - says what happened
    """A backslash before something that is no command, or that lacks what it needs."""

    exit_code = 2


def command(text: str) -> str:
    """The command that was typed, without what closes it; empty if it is none."""
    text = text.strip().rstrip("; ")
    text = _TYPED_IN_FLINK.get(text.upper(), text)
    return _SHORT.get(text, text) if text.startswith("\\") else ""


def statement(typed: str) -> str:
    """The statement that a command stands for."""
    name, _, argument = typed.partition(" ")
    if name not in _STATEMENTS:
        raise NoCommand(f"no command '{name}'; \\help lists them")
    if name == "\\describe" and not argument.strip():
        raise NoCommand("\\describe needs the name of a table")
    return _STATEMENTS[name].format(argument.strip())


def is_open(text: str) -> bool:
    """Whether a text ends inside a statement."""
    try:
        words = [token.word for token in tokens(Source(text))]
    except SqlError:  # an open quote or comment: more is to come
        return True
    if len(words) < 2:
        return False
    in_set = "BEGIN" in words and "STATEMENT" in words
    return words[-2] != ";" or (in_set and "END" not in words)


def spelled_out(text: str) -> tuple[str, bool]:
    """A text with its commands as statements, each line in its place; and whether it asks for help.

    What clears a screen does nothing here, and nothing counts after what leaves.
    """
    lines: list[str] = []
    begin, wants_help = 0, False
    for line in text.split("\n"):
        typed = command(line)
        if not typed or is_open("\n".join(lines[begin:])):
            lines.append(line)
            continue
        begin = len(lines)
        if typed == "\\quit":
            break
        wants_help = wants_help or typed == "\\help"
        lines.append("" if typed in ("\\help", "\\clear") else f"{statement(typed)};")
    return "\n".join(lines), wants_help
