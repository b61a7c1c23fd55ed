"""Options of a managed service: checked for shape, and told what they do not do here."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping

from streamcore import OptionWarning, Problem, Secret

KEYS = {
    "accesskeyid": (r"\S{8,}", "an access key id", "accessKeyId"),
    "accesskeysecret": (r"\S{8,}", "an access key secret", "accessKeySecret"),
    "instanceid": (
        r"[A-Za-z0-9_-]+",
        "an instance id such as 'alikafka_post-cn-abc'",
        "instanceId",
    ),
    "endpoint": (
        r"[A-Za-z0-9.-]+(:\d+)?",
        "a host name such as 'alikafka.aliyuncs.com'",
        "endpoint",
    ),
    "regionid": (r"[a-z]{2}(-[a-z0-9]+)+", "a region such as 'cn-hangzhou'", "regionId"),
}


def aliyun_problems(given: Mapping[str, str | Secret]) -> Iterator[Problem]:
    """Complain about values that cannot be meant, and warn once about the rest."""
    for key, value in given.items():
        known = KEYS.get(key.lower())
        if known is None:
            names = ", ".join(f"aliyun.kafka.{name}" for *_, name in KEYS.values())
            yield Problem(f"aliyun.kafka.{key}", f"unknown option; there are {names}")
            continue
        pattern, looks, name = known
        text = value.reveal() if isinstance(value, Secret) else value
        if not re.fullmatch(pattern, text):
            shown = "***" if isinstance(value, Secret) else text
            yield Problem(f"aliyun.kafka.{name}", f"'{shown}' is not {looks}")
    if given:
        warnings.warn(
            "'aliyun.kafka.*' options would let the service create topics on the instance; this "
            "client only writes to topics that exist, and to the brokers of "
            "'properties.bootstrap.servers'",
            OptionWarning,
            stacklevel=2,
        )
