"""The text that lists offsets one by one."""

from __future__ import annotations

import pytest
from streamcore_kafka.offsets import parse_specific


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("partition:0,offset:42;partition:1,offset:300", {0: 42, 1: 300}),
        ("partition:0,offset:42;", {0: 42}),
        ("partition:0,offset:+42", {0: 42}),
        ("partition:0,offset:1;partition:0,offset:2", {0: 2}),
        ("partition:7,offset:-2", {7: -2}),
    ],
)
def test_listed_offsets(text, offsets):
    assert parse_specific(text) == offsets


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        ";partition:0,offset:42",
        "partition:0,offset:42;;partition:1,offset:1",
        "partition:0, offset:42",
        " partition:0,offset:42",
        "Partition:0,offset:42",
        "offset:42,partition:0",
        "partition:0",
        "partition:0,offset:",
        "partition:0,offset:4,2",
        "partition:0,offset:42;;",
        "partition:-1,offset:42",
        "partition:2147483648,offset:42",
        "partition:0,offset:9223372036854775808",
        "partition:0,offset:1e3",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - whoever shows it has a message of its own
        parse_specific(text)
