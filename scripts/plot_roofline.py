#!/usr/bin/env python3
"""Draws the roofline of a day: performance over arithmetic intensity, one point a version, from its
measured records.

    scripts/plot_roofline.py docs/measurements/h200/day05_matmul_tiled.jsonl "matmul 4096x4096x4096" docs/figures/day05_roofline.svg

The roofs are the limits measured in the same run: memory for pure streaming, and FP32
multiply-adds. Arithmetic intensity is counted against the bytes that a version's threads ask memory
for (`requested_bytes`), as PMPP 5.1 does: a point above the memory roof was served by caches. Peers
and limits, whose requests were not counted, are horizontal lines. Needs matplotlib (Debian:
python3-matplotlib).
"""

import argparse
import pathlib
import sys

import plotting
import records as record_files

matplotlib = plotting.matplotlib_or_exit("plot_roofline.py", "svg")
matplotlib.rcParams.update({"svg.hashsalt": "roofline", "font.size": 9, "svg.fonttype": "none"})
import matplotlib.pyplot as plt
import matplotlib.ticker


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument("problem")
    parser.add_argument("figure", type=pathlib.Path)
    arguments = parser.parse_args()
    records = [
        record
        for record in record_files.read(arguments.records)
        if record["problem"] == arguments.problem
        and record["l2"] == "warm"
        and record["device"] != record_files.HOST
    ]
    if not records:
        sys.exit(f"plot_roofline.py: {arguments.records} has no warm record of '{arguments.problem}'")

    memory = max(record["limit_bytes_per_second"] for record in records)
    peak = max(record["limit_flops_per_second"] for record in records)
    figure, axes = plt.subplots(figsize=(7, 4.4))
    roof = [1 / 16, peak / memory, 128]
    axes.loglog(roof, [min(peak, memory * x) / 1e9 for x in roof], color="black")
    axes.annotate(f"FP32 {peak / 1e12:.1f} TFLOP/s", (128, peak / 1e9), ha="right", va="bottom")
    axes.annotate(
        f"memory {memory / 1e9:.0f} GB/s",
        (4, memory * 4e-9),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
    )

    labels = {}  # versions at nearly one place share a label
    for record in records:
        rate = record["flops"] / record["median_ms"] / 1e6
        if record["requested_bytes"]:
            x = record["flops"] / record["requested_bytes"]
            axes.plot(x, rate, "o", color="tab:green")
            near = next((at for at in labels if at[0] == x and 0.8 < rate / at[1] < 1.25), (x, rate))
            labels.setdefault(near, []).append(record["version"])
        elif record["flops"]:
            axes.axhline(rate, color="tab:gray", linestyle=":")
            axes.annotate(
                f"{record['version']} ({record['role']})", (1 / 16, rate), va="bottom", color="tab:gray"
            )
    for place, names in labels.items():
        axes.annotate(", ".join(names), place, xytext=(6, -3), textcoords="offset points")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))

    axes.set_xlabel("arithmetic intensity: operations per byte requested from global memory")
    axes.set_ylabel("GFLOP/s")
    axes.set_title(f"{arguments.problem}, {records[0]['dtype']}, {records[-1]['device']}")
    axes.grid(True, which="major", color="0.9")
    arguments.figure.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.figure, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
