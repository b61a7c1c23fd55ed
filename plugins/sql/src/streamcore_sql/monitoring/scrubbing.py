"""Nothing that is shown about a job holds a secret of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from streamcore import Secret
from streamcore.values import URL_LOGIN, is_sensitive, without_logins

from ..masking import MASK

_SHORTEST = 4
"""Shorter texts are part of too many words to be looked for; their option is masked anyway."""
_PART_OF_WORDS = 8
"""Shorter ones are looked for as words only: a login 'test' must not change '/tmp/latest'."""
_WITHIN = re.compile(r"""(?:password|secret)\s*=\s*["']?([^"';\s]+)""", re.IGNORECASE)
_OURS = frozenset(
    {"id", "job", "name", "table", "side", "connector", "query", "status", "event", "level", "time"}
    | {"log", "web", "metrics", "path"}
)
"""Names, ids and places that we give; a password that is a common word must not change them."""

Options = Mapping[str, str | Secret]


class Secrets:
    """What must not be shown, found in the options of tables and in what the user called secret."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: set[str] = set()
        self.learn(texts)

    def learn(self, texts: Iterable[str]) -> None:
        for text in texts:
            found = {text, *_WITHIN.findall(text)}
            self._texts |= {each for each in found if len(each) >= _SHORTEST}

    def options(self, given: Options) -> dict[str, str]:
        """Options as they may be shown; what is hidden here is hidden elsewhere from now on."""
        shown = {}
        for key, value in sorted(given.items()):
            text = value.reveal() if isinstance(value, Secret) else value
            hidden = isinstance(value, Secret) or is_sensitive(key)
            logins = URL_LOGIN.findall(text)
            self.learn([text] if hidden else [login.partition(":")[2] for login in logins])
            shown[key] = MASK if hidden else str(value)
        return {key: self.scrub(value) for key, value in shown.items()}

    def scrub(self, text: str) -> str:
        """A text without any of them."""
        for each in sorted(self._texts, key=len, reverse=True):
            if len(each) >= _PART_OF_WORDS:
                text = text.replace(each, MASK)
            elif each in text:
                text = re.sub(rf"(?<!\w){re.escape(each)}(?!\w)", MASK, text)
        return without_logins(text)

    def clean(self, value: Any) -> Any:
        """A JSON value without any of them; what we look things up by is left as it is."""
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, Mapping):
            return {
                key: each if key in _OURS and isinstance(each, str) else self.clean(each)
                for key, each in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.clean(each) for each in value]
        return value


SECRETS = Secrets()
"""Those of this process: what one job hides, no other may show."""
