#!/usr/bin/env python3
"""Draws what the warps of one block do when, a bar for each warp, from the stamps that
day38_async_pipeline --timeline writes.

    scripts/plot_timeline.py timeline.json docs/figures/day38_timeline.svg [--tiles 8 14]

Of each version the warps that the file has, from the moment the first of them begins with the first
of the tiles to the moment the last has done with the last. All versions have one scale; how deep a
tile is, and how many blocks share the multiprocessor, the lesson says. Needs matplotlib (Debian:
python3-matplotlib).
"""

import argparse
import json
import pathlib
import sys

import plotting

matplotlib = plotting.matplotlib_or_exit("plot_timeline.py", "agg")
matplotlib.rcParams.update({"svg.hashsalt": "timeline", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

# Okabe and Ito's colours, which people who confuse red and green can tell apart.
COLOURS = {"copy": "#D55E00", "multiply": "#0072B2", "wait": "#E5E5E5"}


def spans(stamps):
    """{warp: [(activity, tile, begin, end), ...]}: from each stamp to the same warp's next one."""
    found = {}
    last = {}
    for warp, activity, tile, time in stamps:
        if warp in last:
            found.setdefault(warp, []).append((*last[warp], time))
        last[warp] = (activity, tile, time)
    return found


def window(bars, first, last):
    """The intervals in which any thread multiplies a tile between `first` and `last`."""
    times = [
        (begin, end)
        for row in bars.values()
        for activity, tile, begin, end in row
        if activity == "multiply" and first <= tile <= last
    ]
    return (min(begin for begin, _ in times), max(end for _, end in times)) if times else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("timeline", type=pathlib.Path)
    parser.add_argument(
        "figures", type=pathlib.Path, nargs="+", help="files to write; the ending chooses the format"
    )
    parser.add_argument(
        "--tiles", type=int, nargs=2, metavar=("FIRST", "LAST"), default=(8, 14), help="of those along K"
    )
    parser.add_argument("--versions", nargs="+", help="these alone, in this order")
    arguments = parser.parse_args()
    record = json.loads(arguments.timeline.read_text())
    unknown = set(arguments.versions or []) - set(record["versions"])
    if unknown:
        sys.exit(f"plot_timeline.py: {arguments.timeline} has no version {', '.join(sorted(unknown))}")

    drawn = []
    for name in arguments.versions or record["versions"]:
        bars = spans(record["versions"][name])
        shown = window(bars, *arguments.tiles)
        if shown is None:
            sys.exit(
                f"plot_timeline.py: {name} has no tile from {arguments.tiles[0]} to {arguments.tiles[1]}"
            )
        drawn.append((name, bars, shown))
    longest = max(end - begin for _, _, (begin, end) in drawn)

    figure, axes = plt.subplots(
        len(drawn),
        sharex=True,
        squeeze=False,
        figsize=(9, sum(0.5 + 0.14 * len(bars) for _, bars, _ in drawn)),
        gridspec_kw={"height_ratios": [3.5 + len(bars) for _, bars, _ in drawn]},
    )
    for (name, bars, (start, stop)), axis in zip(drawn, axes[:, 0]):
        for warp, row in bars.items():
            for activity, tile, begin, end in row:
                if end <= start or begin >= stop:
                    continue
                begin, end = max(begin, start), min(end, stop)
                # Every other tile is lighter, so that one can be told from the next.
                axis.barh(
                    warp,
                    end - begin,
                    left=begin - start,
                    height=0.8,
                    color=COLOURS[activity],
                    linewidth=0,
                    alpha=0.6 if tile % 2 and activity != "wait" else 1,
                )
        axis.set_title(
            f"{name}: {(stop - start) / (arguments.tiles[1] - arguments.tiles[0] + 1):.0f} {record['clock']} a tile",
            loc="left",
            fontsize=9,
        )
        axis.set_ylabel("warp")
        axis.set_ylim(len(bars) - 0.5, -0.5)
        axis.set_xlim(0, longest * 1.01)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[-1, 0].set_xlabel(
        f"{record['clock']}, {record['problem']}, block {record['block']}, {record['device']}"
    )
    figure.legend(
        handles=[Patch(color=colour, label=activity) for activity, colour in COLOURS.items()],
        loc="upper right",
        ncols=3,
        frameon=False,
    )
    figure.tight_layout()
    for path in arguments.figures:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata)


if __name__ == "__main__":
    main()
