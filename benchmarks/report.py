"""docs/benchmarks.md from the figures of a run: `python -m benchmarks.report FIGURES.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def page(figures: dict[str, Any]) -> str:
    """The page as Markdown: a table for each case, ours first."""
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    lines = [
        "# Benchmarks",
        "",
        f"Made by `{figures['command']}` on {figures['date']}: {figures['machine']}; {versions}.",
        "All sides ran in one sitting on the same broker, data and cores, in turns, after a",
        "warm-up; the figures are medians, the spread is half the range. Read the ratios: absolute",
        "figures mean nothing on a machine that is shared. Ours and Spark's rows were checked to",
        "be equal.",
        "",
    ]
    for case in figures["cases"]:
        lines += [
            f"## {case['what']}",
            "",
            "| side | rows/s | spread | CPU s per million rows | largest worker, MB | ours is |",
            "|---|---|---|---|---|---|",
        ]
        ours = case["sides"][0]
        for side in case["sides"]:
            ratio = "" if side is ours else _ratio(side, ours)
            memory = f"{side['peak_worker_mb']:.0f}" if side["peak_worker_mb"] else "-"
            lines.append(
                f"| {side['side']} | {side['rows_per_second']:,} | ±{side['spread']:.0%} | "
                f"{side['cpu_seconds_per_million_rows']:.2f} | {memory} | {ratio} |"
            )
        lines.append("")
    return "\n".join(lines)


def _ratio(side: dict[str, Any], ours: dict[str, Any]) -> str:
    ratio = side["ratio_ours_to_this"]
    doubt = " (within the noise)" if abs(ratio - 1) < side["spread"] + ours["spread"] else ""
    return f"{ratio:.2f}x{doubt}"


def plot(figures: dict[str, Any], folder: Path) -> None:
    """The ratios as a bar chart, PNG and SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    bars = [
        (f"{case['name']}\nagainst {side['side']}", side["ratio_ours_to_this"])
        for case in figures["cases"]
        for side in case["sides"][1:]
    ]
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(bars) + 1))
    names, ratios = zip(*reversed(bars), strict=True)
    axes.barh(names, ratios, color=["#2a7" if ratio >= 1 else "#c63" for ratio in ratios])
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("how many times as fast streamcore is")
    figure.tight_layout()
    for ending in ("png", "svg"):
        figure.savefig(folder / f"benchmarks.{ending}", dpi=120)


def main() -> None:
    """Write the page and the plots."""
    figures = json.loads(Path(sys.argv[1]).read_text())
    plot(figures, DOCS)
    text = page(figures) + "\n![how many times as fast streamcore is](benchmarks.svg)\n"
    (DOCS / "benchmarks.md").write_text(text)


if __name__ == "__main__":
    main()
