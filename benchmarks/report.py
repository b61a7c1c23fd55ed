"""docs/benchmarks.md and the README's table from a run: `python -m benchmarks.report FILE.json`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_SHOWN = {
    "source-json": "Kafka source, json",
    "source-csv": "Kafka source, csv",
    "source-avro": "Kafka source, avro",
    "source-debezium-json": "Kafka source, debezium-json",
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
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    lines = [
        "# Benchmarks",
        "",
        f"Made by `{figures['command']}` on {figures['date']}: {figures['machine']}; {versions}.",
        "All sides ran in one sitting on the same broker, data and cores, in turns, after a",
        "warm-up; the figures are medians, the spread is half the range. Read the ratios: absolute",
        "figures mean nothing on a machine that is shared. Ours and Spark's rows were checked to",
        "be equal, on two million messages at most, and so were the final tables of ours and",
        "Flink's; a sink's topic was counted. Flink runs with its defaults: it tells each change",
        "of an aggregate, where a micro-batch tells the last one.",
        "",
        "![how many times as fast streamcore is](benchmarks.svg)",
        "",
    ]
    if notes := behind(figures):
        lines += ["Where we are behind:", "", *notes, ""]
    for case in figures["cases"]:
        lines += _case(case)
    return "\n".join(lines)


def behind(figures: dict[str, Any]) -> list[str]:
    """A line for each peer that is clearly faster."""
    return [
        f"- {case['what']}: {side['ratio_ours_to_this']:.2f}x of {side['side']}"
        for case, side in _pairs(figures)
        if side["ratio_ours_to_this"] + side["spread"] + case["sides"][0]["spread"] < 1
        and side["side"] not in ("bare consume", "at least once")  # ceilings, not peers
    ]


def _case(case: dict[str, Any]) -> Iterator[str]:
    latency = case["unit"] == "ms"
    yield f"## {case['what']}"
    yield ""
    pace, cpu = ("ms", "CPU ms") if latency else ("rows/s", "CPU s per million rows")
    more = list(case["sides"][0]["extra"])
    yield (
        f"| side | {pace} | spread | {cpu} | largest worker, MB | "
        + "".join(f"{name} | " for name in more)
        + "ours is |"
    )
    yield "|---" * (6 + len(more)) + "|"
    for side in case["sides"]:
        first = side is case["sides"][0]
        ratio = "" if first else _ratio(side, case["sides"][0])
        memory = f"{side['peak_worker_mb']:.0f}" if side["peak_worker_mb"] else "-"
        rate, cost = side["rows_per_second"], side["cpu_seconds_per_million_rows"]
        paced = f"{1000 / rate:,.1f}" if latency else f"{rate:,.0f}"
        costs = f"{cost / 1000:,.1f}" if latency else f"{cost:.2f}"
        extra = "".join(f"{side['extra'][name]:,.0f} | " for name in more)
        yield (
            f"| {side['side']} | {paced} | ±{side['spread']:.0%} | {costs} | {memory} | "
            f"{extra}{ratio} |"
        )
    yield ""


def _ratio(side: dict[str, Any], ours: dict[str, Any]) -> str:
    ratio = side["ratio_ours_to_this"]
    doubt = " (within the noise)" if abs(ratio - 1) < side["spread"] + ours["spread"] else ""
    return f"{ratio:.2f}x{doubt}"


def _pairs(figures: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for case in figures["cases"]:
        for side in case["sides"][1:]:
            yield case, side


def shop_window(figures: dict[str, Any]) -> str:
    """The few lines that the README shows."""
    shown = [case for case in figures["cases"] if case["name"] in _SHOWN]
    against = {side["side"] for case in shown for side in case["sides"][1:]}
    peers = [peer for peer in _PEERS if peer in against]
    lines = ["| how many times as fast as | " + " | ".join(peers) + " |"]
    lines.append("|---" * (len(peers) + 1) + "|")
    for case in shown:
        ours = case["sides"][0]
        found = {side["side"]: _ratio(side, ours) for side in case["sides"][1:]}
        cells = [found.get(peer, "") for peer in peers]
        lines.append(f"| {_SHOWN[case['name']]} | " + " | ".join(cells) + " |")
    machine, date, command = figures["machine"], figures["date"], figures["command"]
    lines += ["", f"[All figures](docs/benchmarks.md): {date}, {machine}, by `{command}`."]
    return "\n".join(lines)


_PEERS = ("Spark's own", "Flink SQL", "at least once", "bare boto3")


def plot(figures: dict[str, Any], folder: Path) -> None:
    """The ratios as a bar chart, PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "streamcore"
    from matplotlib import pyplot

    bars = [
        (f"{case['name']} against {side['side']}", side["ratio_ours_to_this"])
        for case, side in _pairs(figures)
    ]
    figure, axes = pyplot.subplots(figsize=(9, 0.3 * len(bars) + 1))
    names, ratios = zip(*reversed(bars), strict=True)
    drawn = axes.barh(names, ratios, color=["#2a7" if ratio >= 1 else "#c63" for ratio in ratios])
    axes.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
    axes.axvline(1, color="black", linewidth=1)
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
