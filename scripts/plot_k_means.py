#!/usr/bin/env python3
"""Draws a run of k-means in the plane, from what day46_reduce_in_matmul --clusters writes:
clusters, the way of their centres, and the inertia.

    scripts/plot_k_means.py clusters.json docs/figures/day46_k_means.svg

Left, the points in the colours of the centres they belong to in the end, and each centre's way
there: a ring at its start, a dot for each iteration, a cross at its end. Right, the inertia of each
iteration. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import pathlib
import sys

import plotting

matplotlib = plotting.matplotlib_or_exit("plot_k_means.py", "agg")
matplotlib.rcParams.update({"svg.hashsalt": "k_means", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt

# Okabe and Ito's colours, which people who confuse red and green can tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F"]


def draw_clusters(axes, run):
    for centre, colour in zip(range(len(run["centres"][0])), COLOURS):
        own = [point for point, at in zip(run["points"], run["assignment"]) if at == centre]
        axes.plot(
            *zip(*own) if own else ([], []), ".", color=colour, markersize=6, markeredgewidth=0, alpha=0.7
        )
    for centre, colour in zip(range(len(run["centres"][0])), COLOURS):
        way = list(zip(*(centres[centre] for centres in run["centres"])))
        axes.plot(*way, "-", color="black", linewidth=1)
        axes.plot(*way, ".", color="black", markersize=4)
        axes.plot(*[x[0] for x in way], "o", markerfacecolor="white", markeredgecolor="black", markersize=6)
        axes.plot(*[x[-1] for x in way], "X", markerfacecolor=colour, markeredgecolor="black", markersize=9)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(
        f"{len(run['points'])} points, {len(run['centres'][0])} centres, {len(run['inertia'])} iterations",
        loc="left",
        fontsize=9,
    )


def draw_inertia(axes, run):
    axes.plot(range(1, len(run["inertia"]) + 1), run["inertia"], ".-", color=COLOURS[0])
    axes.set_ylim(0, 1.05 * max(run["inertia"]))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("iteration")
    axes.set_title("inertia", loc="left", fontsize=9)
    axes.grid(True, color="0.9")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("clusters", type=pathlib.Path)
    parser.add_argument(
        "figures", type=pathlib.Path, nargs="+", help="files to write; the ending chooses the format"
    )
    arguments = parser.parse_args()
    run = json.loads(arguments.clusters.read_text())
    if len(run["centres"][0]) > len(COLOURS):
        sys.exit(
            f"plot_k_means.py: {arguments.clusters} has {len(run['centres'][0])} centres; there are {len(COLOURS)} colours"
        )

    figure, (left, right) = plt.subplots(ncols=2, figsize=(9, 4.6), gridspec_kw={"width_ratios": [5, 4]})
    draw_clusters(left, run)
    draw_inertia(right, run)
    figure.tight_layout()
    for path in arguments.figures:
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata)


if __name__ == "__main__":
    main()
