#!/usr/bin/env python3
"""Draws the climb: TFLOP/s over the size of a square product, a line a version, from measured records.

    scripts/plot_ladder.py docs/measurements/h200/gemm_ladder.jsonl docs/figures/gemm_ladder.svg docs/figures/gemm_ladder.png
    scripts/plot_ladder.py docs/measurements/h200/day40_tensor_cores.jsonl docs/figures/day40_tensor_cores.svg \\
        --problem bfloat16 --without cublas_with_handle

Warm records of square problems alone. cuBLAS is the bold line; for SGEMM the rate of multiply-adds
measured in the same run is the dashed one. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import pathlib
import re
import sys

import plotting
import records as record_files

matplotlib = plotting.matplotlib_or_exit("plot_ladder.py", "agg")
matplotlib.rcParams.update({"svg.hashsalt": "ladder", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt

# Okabe and Ito's colours, which people who confuse red and green can tell apart; after seven lines
# the dash changes.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F"]
DASHES = ["-", (0, (5, 1.5)), (0, (1, 1))]
LABEL_HEIGHT = 0.031  # of the axes


def curves(records, problem, without):
    """{version: {N: record}} of the warm records of square problems, in their order."""
    found = {}
    for record in records:
        square = re.fullmatch(re.escape(problem) + r" (\d+)x\1x\1", record["problem"])
        preparation = re.match(
            r"\d+[a-z]_", record["version"]
        )  # of the ladder: one idea of a step, measured alone
        left_out = record["version"] in without or record["device"] == record_files.HOST
        if square and record["l2"] == "warm" and not left_out and not preparation:
            found.setdefault(record["version"], {})[int(square[1])] = record
    return found


def spread(places, gap):
    """The same places, moved apart as little as it takes for neighbours to be `gap` away; each
    group stays centred.
    """
    groups = []  # (sum of wanted - own offset, how many), bottom to top
    for place in sorted(places):
        groups.append([place, 1])
        while (
            len(groups) > 1
            and groups[-2][0] / groups[-2][1] + gap * groups[-2][1] > groups[-1][0] / groups[-1][1]
        ):
            total, count = groups.pop()
            groups[-1][0] += total - count * gap * groups[-1][1]
            groups[-1][1] += count
    moved = [total / count + gap * i for total, count in groups for i in range(count)]
    order = sorted(range(len(places)), key=places.__getitem__)
    result = [0.0] * len(places)
    for place, index in zip(moved, order):
        result[index] = place
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument(
        "figures", type=pathlib.Path, nargs="+", help="files to write; the ending chooses the format"
    )
    parser.add_argument(
        "--problem",
        default="sgemm",
        help="what the problems are called before their size (default: %(default)s)",
    )
    parser.add_argument("--without", nargs="+", default=[], help="versions to leave out")
    arguments = parser.parse_args()
    records = record_files.read(arguments.records)
    lines = curves(records, arguments.problem, arguments.without)
    if not lines:
        sys.exit(
            f"plot_ladder.py: {arguments.records} has no warm record of a square '{arguments.problem} NxNxN'"
        )
    measured = [record for line in lines.values() for record in line.values()]
    multiply_adds = arguments.problem == "sgemm"  # the limit in the records is of those, not of tensor cores
    peak = max(record["limit_flops_per_second"] for record in measured) / 1e12 if multiply_adds else 0

    figure, axes = plt.subplots(figsize=(8, 6))
    axes.set_xscale("log", base=2)
    sizes = sorted({size for line in lines.values() for size in line})
    labels = []  # (name, where its line ends, colour, weight)
    ours = 0
    for name, line in lines.items():
        places = sorted(line)
        rates = [line[size]["flops"] / line[size]["median_ms"] / 1e9 for size in places]
        if line[places[0]]["role"] == "peer":
            colour, dash, width = "black", "-", 2.6
        else:
            colour, dash, width = (
                COLOURS[ours % len(COLOURS)],
                DASHES[ours // len(COLOURS) % len(DASHES)],
                1.3,
            )
            ours += 1
        axes.plot(places, rates, color=colour, linestyle=dash, linewidth=width, marker=".", markersize=4)
        labels.append(
            (name.replace("_", " "), (places[-1], rates[-1]), colour, "bold" if width > 2 else "normal")
        )
    if peak > 0:
        axes.axhline(peak, color="black", linestyle="--", linewidth=1)
        axes.annotate(
            f"FP32 multiply-adds, measured: {peak:.1f} TFLOP/s",
            (sizes[0], peak),
            xytext=(0, 3),
            textcoords="offset points",
            va="bottom",
            bbox={"color": "white", "pad": 1},
        )

    top = 1.08 * max([peak] + [label[1][1] for label in labels] + [0.1])
    axes.set_ylim(0, top)
    axes.set_xlim(sizes[0] / 1.1, sizes[-1] * 1.1)
    heights = spread([label[1][1] / top for label in labels], LABEL_HEIGHT)
    for (name, end, colour, weight), height in zip(labels, heights):
        axes.annotate(
            name,
            end,
            xytext=(1.05, height),
            textcoords="axes fraction",
            va="center",
            color=colour,
            weight=weight,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "relpos": (0, 0.5),
                "shrinkA": 1,
            },
        )

    powers = [size for size in sizes if size & (size - 1) == 0]
    axes.set_xticks(powers, [str(size) for size in powers])
    axes.minorticks_off()
    axes.set_xlabel("M = N = K")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(
        f"{'SGEMM' if multiply_adds else 'C = A B, ' + arguments.problem}, warm, {measured[0]['device']}"
    )
    axes.grid(True, color="0.9")
    for path in arguments.figures:
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, bbox_inches="tight", dpi=150, metadata=metadata)


if __name__ == "__main__":
    main()
