"""What the benchmarks say about their figures."""

import json

import pytest

from benchmarks.measure import Case, Outcome, Run, alternate
from benchmarks.report import behind, page, shop_window


def case(name, *sides, unit="rows/s"):
    outcomes = [
        Outcome(side, [Run(seconds, 1000, cpu=1.0) for seconds in taken]) for side, *taken in sides
    ]
    return Case(name, f"the case {name}", outcomes, unit)


def figures(*cases):
    return {
        "command": "python -m benchmarks",
        "date": "2026-01-01",
        "machine": "2 cores",
        "versions": {"pyspark": "4.3.0"},
        "cases": json.loads(json.dumps([each.as_json() for each in cases])),
    }


def test_a_lead_smaller_than_the_noise_is_called_so():
    noisy = case("source-json", ("streamcore", 1.0, 1.5, 2.0), ("Spark's own", 1.6, 1.7, 1.8))
    assert noisy.verdict(noisy.outcomes[1]) == "1.13x (within the noise)"
    clear = case("source-json", ("streamcore", 1.0, 1.01, 1.02), ("Spark's own", 2.0, 2.02, 2.04))
    assert clear.verdict(clear.outcomes[1]) == "2.00x"


def test_who_is_faster_than_us_is_named():
    slow = case("source-json", ("streamcore", 2.0, 2.0), ("Flink SQL", 1.0, 1.0))
    ceiling = case("source-csv", ("streamcore", 2.0, 2.0), ("bare consume", 1.0, 1.0))
    assert behind(figures(slow, ceiling)) == ["- the case source-json: 0.50x of Flink SQL"]
    assert "Where we are behind" in page(figures(slow))


def test_latencies_are_shown_in_milliseconds():
    quick = case("latency-10", ("streamcore", 200.0), ("Spark's own", 300.0), unit="ms")
    text = page(figures(quick))
    assert "| streamcore | 200.0 |" in text
    assert "| 1.50x |" in text


def test_the_readme_shows_ratios_by_peer():
    text = shop_window(figures(case("sink-json", ("streamcore", 1.0), ("Spark's own", 1.5))))
    assert "| Kafka sink, json | 1.50x |" in text


def test_sides_that_compute_different_things_are_no_benchmark():
    sides = {"a": lambda: Run(1.0, 10), "b": lambda: Run(1.0, 11)}
    with pytest.raises(SystemExit, match="computed different things"):
        alternate("x", "x", sides, runs=1, warmups=0)
