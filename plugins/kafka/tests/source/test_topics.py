"""Topic patterns mean what they mean in Java."""

from __future__ import annotations

import re

import pytest
from streamcore_kafka.topics import TOPIC_NAME, JavaOnly, java_pattern, matches


@pytest.mark.parametrize(
    ("pattern", "topic", "is_match"),
    [
        ("orders", "orders", True),
        ("orders", "orders-2", False),
        ("orders", "my-orders", False),
        ("a|ab", "ab", True),
        (r"\Qa.b\E-\d+", "a.b-12", True),
        (r"\Qa.b\E-\d+", "axb-12", False),
        (r"\Qa.b", "a.b", True),
        ("(?<year>[0-9]{4})-orders", "2024-orders", True),
        ("(?<!x)orders", "orders", True),
        ("(?i)ORDERS", "orders", True),
        ("o++rders", "oorders", True),
        ("a&&b", "a&&b", True),
        (r"[a\[\]]+&&", "a[]&&", True),
        (r"[\Q&&[\E]+", "&[&", True),
        ("[]a]", "]", True),
    ],
)
def test_the_whole_name_must_match(pattern, topic, is_match):
    assert matches(java_pattern(pattern), topic) is is_match


def test_a_broken_pattern_raises():
    with pytest.raises(re.error):
        java_pattern("orders-(")


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("orders-[0-9&&[^7]]", "'&&' inside of '[…]'"),
        ("[a-z&&x]", "'&&' inside of '[…]'"),
        ("[a-d[m-p]]", "a class inside of '[…]'"),
        (r"\p{Alpha}+", r"'\p'"),
        (r"[\P{Alpha}]", r"'\P'"),
        (r"orders\z", r"'\z'"),
    ],
)
def test_what_java_alone_knows_is_named(pattern, what):
    with pytest.raises(JavaOnly) as refused:
        java_pattern(pattern)
    assert str(refused.value) == f"{what} is known to Java alone; list the characters"


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249])
def test_topic_names(name):
    assert TOPIC_NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250])
def test_what_is_no_topic_name(name):
    assert not TOPIC_NAME.fullmatch(name)
