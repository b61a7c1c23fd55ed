"""Which options hold secrets, so that no error and no SHOW CREATE TABLE prints one."""

from __future__ import annotations

import re

MASK = "***"

_WORDS = (
    "password|passwd|passphrase|secret|token|credential|private.?key|access.?key|api.?key"
    r"|key\.pem|jaas|basic-auth\.user-info|user\.info"
)
_SECRET = re.compile(_WORDS, re.IGNORECASE)
KEY_AND_VALUE = re.compile(
    rf"'[^']*(?:{_WORDS})[^']*'\s*=?\s*'(?P<value>(?:[^']|'')*)'?", re.IGNORECASE
)


def is_secret_key(key: str) -> bool:
    """Whether the value of an option with this key should never be shown."""
    return _SECRET.search(key) is not None
