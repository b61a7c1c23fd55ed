"""Java's escapes in option values, so that a tab or a control character can be written."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(u+([0-9a-fA-F]{4})|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def unescaped(text: str) -> str:
    r"""Resolve `\n`, `\t`, `\\`, `\u0001` and octal escapes; any other keeps its character."""

    def resolve(match: re.Match[str]) -> str:
        if match[2]:
            return chr(int(match[2], 16))
        if match[1][0] in "01234567":
            return chr(int(match[1], 8))
        return _LETTERS.get(match[1], match[1])

    return _ESCAPE.sub(resolve, text)
