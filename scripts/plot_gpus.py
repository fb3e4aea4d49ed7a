#!/usr/bin/env python3
"""Draws when the sweeps and copies of several GPUs run, a row for each stream, from the events that
day50_multi_gpu --timeline records.

    scripts/plot_gpus.py timeline.json docs/figures/day50_timeline.svg

All versions have one scale. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import pathlib

import plotting

matplotlib = plotting.matplotlib_or_exit("plot_gpus.py", "agg")
matplotlib.rcParams.update({"svg.hashsalt": "gpus", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

# Okabe and Ito's colours, which people who confuse red and green can tell apart.
COLOURS = {("edges", "sweep"): "#56B4E9", ("middle", "sweep"): "#0072B2", ("edges", "copy"): "#D55E00"}
LABELS = {
    ("edges", "sweep"): "sweep in stream `edges`",
    ("middle", "sweep"): "sweep of the middle",
    ("edges", "copy"): "copy",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("timeline", type=pathlib.Path)
    parser.add_argument(
        "figures", type=pathlib.Path, nargs="+", help="files to write; the ending chooses the format"
    )
    arguments = parser.parse_args()
    record = json.loads(arguments.timeline.read_text())

    drawn = []
    for name, bars in record["versions"].items():
        rows = sorted({(rank, stream) for rank, stream, what, begin, end in bars})
        drawn.append((name, bars, rows))
    figure, axes = plt.subplots(
        len(drawn),
        sharex=True,
        squeeze=False,
        figsize=(8, 0.6 + sum(0.35 + 0.22 * len(rows) for name, bars, rows in drawn)),
        gridspec_kw={"height_ratios": [1 + len(rows) for name, bars, rows in drawn]},
        layout="constrained",
    )
    for axis, (name, bars, rows) in zip(axes[:, 0], drawn):
        for rank, stream, what, begin, end in bars:
            axis.barh(
                rows.index((rank, stream)),
                end - begin,
                left=begin,
                height=0.8,
                color=COLOURS[stream, what],
                edgecolor="white",
                linewidth=0.5,
            )
        axis.set_yticks(range(len(rows)), [f"GPU {rank}, {stream}" for rank, stream in rows])
        axis.invert_yaxis()
        axis.set_title(name, loc="left", family="monospace", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel("µs")
    used = {(stream, what) for name, bars, rows in drawn for rank, stream, what, begin, end in bars}
    figure.legend(
        handles=[Patch(color=COLOURS[key], label=LABELS[key]) for key in COLOURS if key in used],
        loc="outside upper right",
        ncols=3,
        frameon=False,
    )
    for file in arguments.figures:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
