#!/usr/bin/env python3
"""Draws how many times as fast as the best library ours is, a line a problem, from measured records.

    scripts/plot_beside_peers.py docs/measurements/h200/day45_fused_matmul.jsonl docs/figures/day45_beside_peers.svg

The fastest of ours and of the peers, warm. Problems that differ in their layout alone (a last word
NN, NT, TN or TT) share a line, with a dot for each. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import pathlib
import re
import sys

import plotting
import records as record_files

matplotlib = plotting.matplotlib_or_exit("plot_beside_peers.py", "agg")
matplotlib.rcParams.update({"svg.hashsalt": "beside_peers", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt

AHEAD, BEHIND = "#0072B2", "#D55E00"  # Okabe and Ito's, which people who confuse red and green can tell apart


def ratios(records):
    """{problem without its layout: [time of the best peer / time of the best of ours]}, in the
    order of the records.
    """
    best = {}  # {problem: {role: ms}}
    for record in records:
        if record["l2"] == "warm" and record["role"] in ("ours", "peer") and record["verified"]:
            times = best.setdefault(record["problem"], {})
            times[record["role"]] = min(times.get(record["role"], float("inf")), record["median_ms"])
    lines = {}
    for problem, times in best.items():
        if len(times) == 2:
            lines.setdefault(re.sub(r" [NT][NT]$", "", problem), []).append(times["peer"] / times["ours"])
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument(
        "figures", type=pathlib.Path, nargs="+", help="files to write; the ending chooses the format"
    )
    arguments = parser.parse_args()
    records = record_files.read(arguments.records)
    lines = ratios(records)
    if not lines:
        sys.exit(
            f"plot_beside_peers.py: {arguments.records} has no problem with a warm record of ours and of a peer"
        )

    figure, axes = plt.subplots(figsize=(8, 1 + 0.22 * len(lines)))
    axes.axvline(1, color="black", linewidth=1)
    for place, values in enumerate(lines.values()):
        axes.plot(
            [1, max(values, key=lambda value: abs(value - 1))],
            [place, place],
            color="#BBBBBB",
            linewidth=1,
            zorder=0,
        )
        axes.scatter(
            values, [place] * len(values), s=18, color=[AHEAD if value >= 1 else BEHIND for value in values]
        )
    axes.set_yticks(range(len(lines)), lines)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.grid(axis="x", linewidth=0.4)
    axes.set_xlabel("times as fast as the fastest library")
    axes.set_title(next(r["device"] for r in records if r["role"] == "ours"), loc="left", fontsize=9)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    for path in arguments.figures:
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
