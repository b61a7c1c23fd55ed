"""docs/benchmarks.md and the README's table from a run: `python -m benchmarks.report FILE.json`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .measure import Case, Outcome
from .reasons import CEILINGS, ENOUGH, OWN, REASONS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_SHOWN = {
    "source-json": "Kafka source, json",
    "source-csv": "Kafka source, csv",
    "source-avro": "Kafka source, avro",
    "source-debezium-json": "Kafka source, debezium-json",
    "consumer-loop": "Kafka messages to Arrow, one process",
    "sink-json": "Kafka sink, json",
    "sink-exactly-once": "Kafka sink, exactly once",
    "copy-json": "topic to topic, json",
    "copy-json-exactly-once": "topic to topic, exactly once",
    "page-views": "page views per region, end to end",
    "upsert-to-upsert": "upsert topic to upsert topic",
    "latency-10": "latency at 10 rows/s",
    "kinesis-source": "Kinesis source",
}
"""The cases of the README's table, with what they are called there."""


def page(figures: dict[str, Any]) -> str:
    """The page as Markdown: all ratios, then a table for each case, ours first."""
    lines = [
        "# Benchmarks",
        "",
        *_sittings(figures),
        "",
        "The sides of a case ran in one sitting on the same broker, data and cores, in turns,",
        "after a warm-up, and another side began each turn. Figures are medians, and a spread is",
        "half the range. A ratio is the median of the turns' ratios: ours and theirs of one turn",
        "ran one after the other, so that a machine that slows down slows both. A lead that is",
        "smaller than the spread of its ratio is said to be within the noise. Read the ratios:",
        "absolute figures mean nothing on a machine that is shared, and there the ratio by CPU",
        "time, which counts what a side used and not what it waited for, is the steadier one.",
        "",
        "What the sides read and wrote was compared once for each, outside of the time: ours,",
        "Spark's and Flink's rows of all messages that differ (longer topics repeat them) by",
        "their number and a checksum of every column, the rows in the topics and streams that",
        "sinks and copies wrote likewise, but fewer of them than are measured, and the tables",
        "that topics of upserts leave. Memory is that of the",
        "largest Python worker, and in brackets what of it is above a worker that has nothing",
        "to do. Bare consume, which decodes nothing, stands beside JSON and the consumer loop",
        "alone: it is the same for every format. Flink's sink is in the copies from topic to",
        "topic.",
        "",
        *_of_before(figures),
        "![how many times as fast streamcore is](benchmarks.svg)",
        "",
    ]
    if failures := figures.get("failures"):
        lines += ["Cases without figures:", ""]
        lines += [f"- {told['what']}: {_first_line(told['reason'])}" for told in failures.values()]
        lines.append("")
    if notes := behind(figures):
        lines += ["Where we are behind:", "", *notes, ""]
    for case in figures["cases"]:
        lines += _case(Case.from_json(case))
    return "\n".join(lines)


def _of_before(figures: dict[str, Any]) -> Iterator[str]:
    """Which cases are of sittings that went otherwise; their ratios were single numbers."""
    found = [
        case["name"]
        for case in figures["cases"]
        if len(case["sides"]) > 1 and not isinstance(case["sides"][0]["ratio_ours_to_this"], dict)
    ]
    if found:
        yield "Ours began every turn, and larger samples were compared, when these were measured:"
        yield f"{', '.join(found)}. Their ratios were those"
        yield "of the medians; they were computed anew, from the same runs, when the rule changed."
        yield ""


def _sittings(figures: dict[str, Any]) -> Iterator[str]:
    """What was run when and on what, and how often each side."""
    yield "| cases | command | date | runs | minutes |"
    yield "|---|---|---|---|---|"
    by_sitting: dict[str, list[dict[str, Any]]] = {}
    for case in figures["cases"]:
        by_sitting.setdefault(case["sitting"], []).append(case)
    for name, cases in by_sitting.items():
        sitting = figures["sittings"][name]
        groups = ", ".join(dict.fromkeys(case["group"] for case in cases))
        runs = " or ".join(str(number) for number in sorted({case["runs"] for case in cases}))
        minutes = sum(case["took_seconds"] for case in cases) / 60
        told = f"`{sitting['command']}` | {sitting['date']} | {runs} | {minutes:.0f}"
        yield f"| {groups} | {told} |"
    yield ""
    for told, groups in _machines(figures).items():
        yield f"{', '.join(groups)}: {told}."


def _machines(figures: dict[str, Any]) -> dict[str, list[str]]:
    """The groups measured on each machine and with each set of versions; 'All' if there is one."""
    found: dict[str, list[str]] = {}
    for case in figures["cases"]:
        sitting = figures["sittings"][case["sitting"]]
        versions = ", ".join(f"{name} {number}" for name, number in sitting["versions"].items())
        groups = found.setdefault(f"{sitting['machine']}; {versions}", [])
        if case["group"] not in groups:
            groups.append(case["group"])
    return {told: ["All"] for told in found} if len(found) == 1 else found


def behind(figures: dict[str, Any]) -> list[str]:
    """A line for each peer that is faster, with the reason or the lack of one."""
    lines = []
    for case, side in _pairs(figures):
        ratio = case.ratio(side)
        if ratio.median >= (1 if side.side not in CEILINGS else ENOUGH) or side.side in OWN:
            continue
        line = f"- {case.what}: {ratio} of {side.side}"
        if ratio.median < ENOUGH:
            line += f". {REASONS.get(case.name, '**No reason is known.**')}"
        lines.append(line)
    return lines


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200]


def _case(case: Case) -> Iterator[str]:
    latency, ours = case.unit == "ms", case.outcomes[0]
    yield f"## {case.what}"
    yield ""
    pace, cpu = ("ms", "CPU ms") if latency else ("rows/s", "CPU s per million rows")
    heads = ["side", pace, "spread", cpu, "largest worker, MB", *ours.extra, "ours is", "by CPU"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for side in case.outcomes:
        peak = side.peak_mb
        cells = [
            side.side,
            f"{side.milliseconds:,.1f}" if latency else f"{side.rate:,.0f}",
            f"±{side.spread:.0%}",
            f"{side.cpu_per_million / 1000:,.1f}" if latency else f"{side.cpu_per_million:.2f}",
            f"{peak:.0f} ({max(0, peak - side.idle_mb):.0f})" if peak else "-",
            *(_number(side.extra.get(name)) for name in ours.extra),
            *(("", "") if side is ours else (case.ratio(side), case.cpu_ratio(side) or "")),
        ]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    if case.note:
        yield case.note
        yield ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.1f}" if value < 10 else f"{value:,.0f}"


def _pairs(figures: dict[str, Any]) -> Iterator[tuple[Case, Outcome]]:
    for case in map(Case.from_json, figures["cases"]):
        for side in case.outcomes[1:]:
            yield case, side


def shop_window(figures: dict[str, Any]) -> str:
    """The few lines that the README shows."""
    shown = [case for case in figures["cases"] if case["name"] in _SHOWN]
    compared: dict[str, dict[str, str]] = {}
    for case, side in _pairs({"cases": shown}):
        compared.setdefault(case.name, {})[side.side] = str(case.ratio(side))
    against = {side for found in compared.values() for side in found}
    peers = [peer for peer in _PEERS if peer in against]
    lines = ["| how many times as fast as | " + " | ".join(peers) + " |"]
    lines.append("|---" * (len(peers) + 1) + "|")
    for name, found in compared.items():
        cells = [found.get(peer, "") for peer in peers]
        lines.append(f"| {_SHOWN[name]} | " + " | ".join(cells) + " |")
    names = sorted({case["sitting"] for case in shown})
    made = [figures["sittings"][name] for name in names]
    dates = ", ".join(sorted({told["date"] for told in made}))
    machines = "; ".join(dict.fromkeys(told["machine"] for told in made))
    lines += ["", f"[All figures, and their commands](docs/benchmarks.md): {machines}, {dates}."]
    return "\n".join(lines)


_PEERS = (
    "Spark's own",
    "Flink SQL",
    "Flink SQL, mini-batch",
    "at least once",
    "bare consume",
    "bare boto3",
)


def plot(figures: dict[str, Any], folder: Path) -> None:
    """The ratios as a bar chart, PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "streamcore"
    from matplotlib import pyplot

    bars = [
        (f"{case.name} against {side.side}", case.ratio(side)) for case, side in _pairs(figures)
    ]
    if not bars:
        return
    figure, axes = pyplot.subplots(figsize=(9, 0.3 * len(bars) + 1))
    names, ratios = zip(*reversed(bars), strict=True)
    medians = [ratio.median for ratio in ratios]
    spreads = [ratio.spread for ratio in ratios]
    colors = ["#2a7" if median >= 1 else "#c63" for median in medians]
    axes.barh(names, medians, xerr=spreads, ecolor="#666", color=colors)
    axes.axvline(1, color="black", linewidth=1)
    beside = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
    for place, ratio in enumerate(ratios):  # right of the line, too
        right = max(ratio.median + ratio.spread, 1)
        axes.annotate(f"{ratio.median:.2f}", (right, place), **beside)
    axes.set_xlabel("how many times as fast streamcore is")
    axes.margins(x=0.1, y=0.01)
    figure.tight_layout()
    for ending in ("png", "svg"):
        figure.savefig(folder / f"benchmarks.{ending}", dpi=120, metadata=_STILL.get(ending))


_STILL = {"svg": {"Date": None}}
"""What keeps a picture the same when its figures are."""


def main() -> None:
    """Write the page, the plots and the README's table."""
    figures = json.loads(Path(sys.argv[1]).read_text())
    plot(figures, DOCS)
    (DOCS / "benchmarks.md").write_text(page(figures))
    readme = ROOT / "README.md"
    between = re.compile(r"(?<=<!-- benchmarks -->\n).*?(?=\n<!-- /benchmarks -->)", re.DOTALL)
    text = shop_window(figures)
    readme.write_text(between.sub(lambda _: text, readme.read_text()))


if __name__ == "__main__":
    main()
