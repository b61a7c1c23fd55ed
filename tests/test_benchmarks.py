"""What the benchmarks say about their figures."""

import json
from contextlib import ExitStack

import pytest

from benchmarks import __main__ as runner
from benchmarks.data import events, sized
from benchmarks.figures import Figures
from benchmarks.measure import BenchmarkError, Case, Outcome, Plan, Run, alternate
from benchmarks.reasons import REASONS
from benchmarks.report import behind, page, shop_window
from benchmarks.setting import Setting


def case(name, *sides, unit="rows/s", group="a-group"):
    outcomes = [
        Outcome(side, [Run(seconds, 1000, cpu=1.0) for seconds in taken]) for side, *taken in sides
    ]
    return Case(name, f"the case {name}", outcomes, unit, group=group)


def figures(*cases):
    names = [each.name for each in cases]
    kept = Figures([], None, names, names)
    for each in cases:
        kept.add(each, 1.0)
    return json.loads(json.dumps(kept.document()))


def ratios(name, *sides):
    """Of the first side to the second, as they are shown."""
    compared = case(name, *sides)
    return str(compared.ratio(compared.outcomes[1]))


def test_a_ratio_is_that_of_the_turns_so_that_a_machine_slowing_down_is_no_noise():
    slowing = ("streamcore", 1.0, 2.0, 3.0), ("Spark's own", 1.5, 3.0, 4.5)
    assert ratios("source-json", *slowing) == "1.50x ±0.00"


def test_a_lead_smaller_than_the_noise_is_called_so():
    noisy = ("streamcore", 1.0, 1.5, 2.0), ("Spark's own", 1.6, 1.7, 1.8)
    assert ratios("source-json", *noisy) == "1.13x ±0.35 (within the noise)"
    clear = ("streamcore", 1.0, 1.01, 1.02), ("Spark's own", 2.0, 2.02, 2.04)
    assert ratios("source-json", *clear) == "2.00x ±0.00"


def test_cpu_time_has_a_ratio_of_its_own_where_it_was_measured():
    def spent(*cpu):
        return [Run(1.0, 1000, cpu=each) for each in cpu]

    dear = Case("x", "x", [Outcome("streamcore", spent(1, 2)), Outcome("Flink SQL", spent(2, 5))])
    assert str(dear.cpu_ratio(dear.outcomes[1])) == "2.25x ±0.25"
    assert "| 1.00x ±0.00 | 2.25x ±0.25 |" in page(figures(dear))
    unknown = Case("x", "x", [Outcome("streamcore", spent(0)), Outcome("Flink SQL", spent(2))])
    assert unknown.cpu_ratio(unknown.outcomes[1]) is None
    assert "| 1.00x ±0.00 |  |" in page(figures(unknown))


def test_another_side_begins_each_turn():
    begun = []

    def side(name):
        return lambda: begun.append(name) or Run(1.0, 10)

    sides = {name: side(name) for name in "abc"}
    alternate("x", sides, sides, runs=3, warmups=0)
    assert "".join(begun) == "abcbcacab"


def test_who_is_faster_than_us_is_named():
    slow = case("copy-json", ("streamcore", 1.1, 1.1), ("Flink SQL", 1.0, 1.0))
    ceiling = case("source-json", ("streamcore", 1.1, 1.1), ("bare consume", 1.0, 1.0))
    own = case("sink-exactly-once", ("exactly once", 2.0, 2.0), ("at least once", 1.0, 1.0))
    assert behind(figures(slow, ceiling, own)) == ["- the case copy-json: 0.91x ±0.00 of Flink SQL"]
    assert "Where we are behind" in page(figures(slow))


def test_who_is_faster_within_the_noise_is_named_too():
    noisy = case("copy-json", ("streamcore", 1.0, 1.5, 2.0), ("Flink SQL", 1.2, 1.3, 1.4))
    (line,) = behind(figures(noisy))
    assert line == "- the case copy-json: 0.87x ±0.25 (within the noise) of Flink SQL"


def test_far_behind_is_given_its_reason_or_said_to_have_none():
    sides = ("streamcore", 2.0, 2.0), ("bare consume", 1.0, 1.0)
    (known,) = behind(figures(case("source-json", *sides)))
    assert known.endswith(f"0.50x ±0.00 of bare consume. {REASONS['source-json']}")
    (unknown,) = behind(figures(case("another", *sides)))
    assert unknown.endswith("**No reason is known.**")


def test_latencies_are_shown_in_milliseconds():
    quick = case("latency-10", ("streamcore", 200.0), ("Spark's own", 300.0), unit="ms")
    text = page(figures(quick))
    assert "| streamcore | 200.0 |" in text
    assert "| 1.50x ±0.00 |" in text


def test_the_readme_shows_ratios_by_peer():
    text = shop_window(figures(case("sink-json", ("streamcore", 1.0), ("Spark's own", 1.5))))
    assert "| Kafka sink, json | 1.50x ±0.00 |" in text


def test_memory_is_told_above_that_of_an_idle_worker():
    large = Case("x", "x", [Outcome("streamcore", [Run(1.0, 10, peak_mb=200.0, idle_mb=80.0)])])
    assert "| 200 (120) |" in page(figures(large))


def test_sides_that_compute_different_things_are_no_benchmark():
    sides = {"a": lambda: Run(1.0, 10), "b": lambda: Run(1.0, 11)}
    with pytest.raises(BenchmarkError, match="computed different things"):
        alternate("x", sides, sides, runs=1, warmups=0)


def test_what_a_warm_up_computed_is_compared_too():
    first = iter(["other"])
    sides = {
        "a": lambda: Run(1.0, 10, checksum="same"),
        "b": lambda: Run(1.0, 10, checksum=next(first, "")),
    }
    with pytest.raises(BenchmarkError, match="computed different things"):
        alternate("x", sides, sides, runs=1, warmups=1)


@pytest.mark.parametrize("size", [100, 1_000, 100_000])
def test_messages_are_as_large_as_they_are_said_to_be(size):
    for message in map(sized(size), events(1_000 if size < 100_000 else 10)):
        assert len(message) == size
        json.loads(message)


def test_figures_of_other_cases_are_kept_with_the_sitting_they_are_from(tmp_path):
    file, names = tmp_path / "figures.json", ["one", "two", "three"]
    first = Figures(["--json", "x"], file, names, names)
    first._name, first._sittings = "before", {"before": next(iter(first._sittings.values()))}
    for name in names:
        first.add(case(name, ("streamcore", 1.0)), 1.0)
    second = Figures(["--only", "two", "three"], file, names, ["two", "three"])
    second.add(case("two", ("streamcore", 2.0), group="b-group"), 1.0)
    second.failed(Plan("three", "the case three", dict, 1), "it broke")
    found = json.loads(file.read_text())
    commands = [found["sittings"][each["sitting"]]["command"] for each in found["cases"]]
    assert [each["name"] for each in found["cases"]] == ["one", "two"]
    assert commands == [
        "python -m benchmarks --json x",
        "python -m benchmarks --only two three",
    ]
    text = page(found)
    assert "| b-group | `python -m benchmarks --only two three` |" in text
    assert "- the case three: it broke" in text


def test_a_case_that_fails_does_not_end_the_sitting(monkeypatch, tmp_path, capsys):
    def broken():
        raise BenchmarkError("its topic is empty")

    def cases(setting):
        yield Plan("bad", "the bad case", broken, runs=1)
        yield Plan("good", "the good case", lambda: {"streamcore": lambda: Run(1.0, 10)}, runs=2)

    monkeypatch.setattr(runner, "GROUPS", {"both": cases})
    file = tmp_path / "figures.json"
    assert runner.main(["--json", str(file)]) == 1
    found = json.loads(file.read_text())
    assert [each["name"] for each in found["cases"]] == ["good"]
    assert found["failures"]["bad"]["reason"] == "BenchmarkError: its topic is empty"
    assert "FAILED bad" in capsys.readouterr().out


def test_a_sitting_has_the_cases_of_its_kind_or_those_that_are_named(monkeypatch, capsys):
    def sides():
        return {"streamcore": lambda: Run(1.0, 10)}

    def cases(setting):
        for name in ("short", "long", "close"):
            yield Plan(name, name, sides, runs=1)

    monkeypatch.setattr(runner, "GROUPS", {"both": cases})
    monkeypatch.setattr(runner, "QUICK", {"short"})
    monkeypatch.setattr(runner, "CLOSER", {"close"})

    def ran(*arguments):
        assert runner.main(list(arguments)) == 0
        told = capsys.readouterr().out
        return [name for name in ("short", "long", "close") if f"\n{name}: " in told]

    assert ran() == ["short", "long"]
    assert ran("--quick") == ["short"]
    assert ran("--all") == ["short", "long", "close"]
    assert ran("--quick", "--only", "both") == ["short", "long", "close"]
    assert ran("--quick", "--only", "long") == ["long"]


def test_the_cases_that_are_told_apart_exist():
    setting = Setting(1000, 1000, 1000, 1, 1, 1, with_flink=False, quick=True, _open=ExitStack())
    assert {plan.name for plan in runner.every_plan(setting)} > (
        runner.QUICK | runner.FIRST | runner.CLOSER
    )


def test_a_sitting_begins_no_case_when_its_time_is_over(monkeypatch, tmp_path, capsys):
    def cases(setting):
        yield Plan("late", "the late case", dict, runs=1)

    monkeypatch.setattr(runner, "GROUPS", {"some": cases})
    file = tmp_path / "figures.json"
    assert runner.main(["--minutes", "0.0000001", "--json", str(file)]) == 0
    assert "were over: --only late" in capsys.readouterr().out
    assert "- the late case: left out" in page(json.loads(file.read_text()))
