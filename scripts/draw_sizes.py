#!/usr/bin/env python3
"""Draws how fast the versions of days 45 to 48 are over the size of their products, beside a library.

    ./course bench day46 --plot --record
    scripts/measure_peers.py --eager docs/measurements/h200/day46_reduce_in_matmul_plot.jsonl
    scripts/draw_sizes.py h200 day46             # docs/figures/day46_sizes_*.svg, one for each of PLOTS
    scripts/draw_sizes.py --check h200           # are the figures of all four days those of the records?

Warm records. A figure has a line for each version, and follows the reader's choice of a light or a dark page.
What it prints: the sizes at which the fastest fused version is faster than everything that writes the product.
"""

import argparse
import math
import pathlib
import re
import sys

import records as record_files
from figures.svg import Figure

ROOT = pathlib.Path(__file__).resolve().parent.parent

# {day: [(name of the figure, title, what is on the x axis, pattern of the problems; its group is x)]}
PLOTS = {
    "day45": [
        ("squares", "128 products of N x N x N", "N", r"batched 128x(\d+)x\1x\1 NN"),
        ("k128", "128 products of N x N x 128", "N", r"batched 128x(\d+)x\1x128 NN"),
    ],
    "day46": [
        ("k16", "Least of N dot products for each of N vectors of 16 numbers", "N", r"argmin of dot (\d+)x\1x16"),
        ("k64", "Least of N dot products for each of N vectors of 64 numbers", "N", r"argmin of dot (\d+)x\1x64"),
        ("k256", "Least of N dot products for each of N vectors of 256 numbers", "N", r"argmin of dot (\d+)x\1x256"),
        ("batch64", "Least of each row of 64 products of N x N x 64", "N", r"argmin of dot 64x(\d+)x\1x64"),
    ],
    "day47": [
        ("k", "Causal scores, 64 heads of 1,024 tokens", "K", r"causal_scores 64x1024x1024x(\d+)"),
        ("batch", "Causal scores, 1,024 tokens, K = 64", "heads", r"causal_scores (\d+)x1024x1024x64"),
    ],
    "day48": [
        ("d64", "128 nearest of 64 numbers, 1,024 queries", "points", r"nearest_neighbours 1024x(\d+)x64, k = 128"),
        ("d256", "128 nearest of 256 numbers, 1,024 queries", "points", r"nearest_neighbours 1024x(\d+)x256, k = 128"),
        ("d1024", "128 nearest of 1,024 numbers, 1,024 queries", "points", r"nearest_neighbours 1024x(\d+)x1024, k = 128"),
        ("k", "k nearest of 262,144 points of 64 numbers, 1,024 queries", "k", r"nearest_neighbours 1024x262144x64, k = (\d+)"),
    ],
}

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 52, 150, 44, 62  # margins: TFLOP/s, names of lines, title, sizes
STYLE = """<style>
 .grid { stroke: #d1d9e0; stroke-width: 1 } .line { fill: none; stroke-width: 2.2; stroke-linejoin: round }
 .l0 { stroke: #2f6fde } .l1 { stroke: #17845b } .l2 { stroke: #b9600f } .l3 { stroke: #9a45bd } .lp { stroke: #59636e; stroke-dasharray: 6 3 } .lq { stroke: #59636e; stroke-dasharray: 2 3 }
 .d0 { fill: #2f6fde } .d1 { fill: #17845b } .d2 { fill: #b9600f } .d3 { fill: #9a45bd } .dp, .dq { fill: #59636e }
 @media (prefers-color-scheme: dark) {
  .grid { stroke: #3d444d }
  .l0 { stroke: #6ea3f5 } .l1 { stroke: #3fb98a } .l2 { stroke: #e0904a } .l3 { stroke: #c58ae0 } .lp, .lq { stroke: #9198a1 }
  .d0 { fill: #6ea3f5 } .d1 { fill: #3fb98a } .d2 { fill: #e0904a } .d3 { fill: #c58ae0 } .dp, .dq { fill: #9198a1 }
 }
</style>"""
LABEL_HEIGHT = 15


def curves(records, pattern):
    """{version: {x: record}} of the warm, verified records whose problem is `pattern`; peers come last."""
    found = {}
    for record in sorted(records, key=lambda record: record["role"] == "peer"):
        problem = re.fullmatch(pattern, record["problem"])
        if problem and record["l2"] == "warm" and record["verified"] and record["role"] in ("ours", "peer"):
            found.setdefault(record["version"], {})[int(problem[1])] = record
    return found


def rate(record):
    """TFLOP/s of the useful multiply-adds."""
    return record["flops"] / record["median_ms"] / 1e9


def spread(places, gap):
    """The same places, moved down as little as it takes to be `gap` apart, then as a whole back into the middle."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, here in zip(order, order[1:]):
        moved[here] = max(moved[here], moved[before] + gap)
    shift = (sum(moved) - sum(places)) / len(places) if places else 0
    return [place - shift for place in moved]


def step_of(largest):
    """A round distance of grid lines, four to eight of them up to `largest`."""
    power = 10 ** math.floor(math.log10(largest / 4))
    return next(power * factor for factor in (1, 2, 5, 10) if largest / (power * factor) <= 8)


def figure(lines, title, axis):
    """One plot as SVG text. `lines`: what curves() returns."""
    sizes = sorted({x for line in lines.values() for x in line})
    any_record = next(iter(next(iter(lines.values())).values()))
    label = "; ".join(
        f"{name}: {rate(line[min(line)]):.1f} TFLOP/s at {min(line):,}, {rate(line[max(line)]):.1f} at {max(line):,}"
        for name, line in lines.items()
    )
    drawn = Figure(WIDTH, HEIGHT, f"{title}. {label}")
    drawn.parts.append(STYLE)
    step = step_of(max(rate(record) for line in lines.values() for record in line.values()))
    top = step * math.ceil(max(rate(record) for line in lines.values() for record in line.values()) / step)
    first, last = math.log2(sizes[0]), math.log2(sizes[-1])

    def x_of(size):
        return LEFT + 14 + (WIDTH - LEFT - RIGHT - 28) * ((math.log2(size) - first) / (last - first) if last > first else 0.5)

    def y_of(tflops):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - tflops / top)

    drawn.text(LEFT, 18, title, "t")
    drawn.text(LEFT - 8, TOP - 10, "TFLOP/s", "s")
    for i in range(round(top / step) + 1):
        drawn.line(LEFT, y_of(i * step), WIDTH - RIGHT, y_of(i * step), "grid")
        drawn.text(LEFT - 8, y_of(i * step) + 4.5, f"{i * step:g}", "s e")
    free = -math.inf  # where the last label ends
    for size in sizes:
        words = f"{size:,}"
        drawn.line(x_of(size), y_of(0), x_of(size), y_of(0) + 4, "grid")
        if x_of(size) - 3.4 * len(words) > free:
            drawn.text(x_of(size), y_of(0) + 18, words, "s m")
            free = x_of(size) + 3.4 * len(words) + 6
    drawn.text((LEFT + WIDTH - RIGHT) / 2, y_of(0) + 36, axis, "s m")
    ends, ours, peers = [], 0, 0
    for name, line in lines.items():
        is_peer = next(iter(line.values()))["role"] == "peer"
        kind = "pq"[min(peers, 1)] if is_peer else str(ours % 4)
        ours, peers = ours + (not is_peer), peers + is_peer
        places = [(x_of(size), y_of(rate(line[size]))) for size in sorted(line)]
        drawn.parts.append(
            f'<path d="M{"L".join(f"{x:.1f},{y:.1f}" for x, y in places)}" class="line l{kind}"/>'
        )
        for x, y in places:
            drawn.circle(round(x, 1), round(y, 1), 2.6, f"d{kind}")
        ends.append((name.replace("_", " "), kind, places[-1]))
    for (name, kind, (x, y)), height in zip(ends, spread([end[2][1] for end in ends], LABEL_HEIGHT)):
        drawn.line(round(x + 4, 1), round(y, 1), WIDTH - RIGHT + 8, round(height, 1), "grid")
        drawn.text(WIDTH - RIGHT + 12, round(height + 4.5, 1), name, f"n d{kind}")
    drawn.text(LEFT, HEIGHT - 8, f"warm, {any_record['device']}, {any_record['date'][:10]}", "s")
    return drawn.svg()


def where_fusion_pays(lines):
    """ "2048 1.31x": at each size, the fastest of ours that writes no product beside everything that does."""
    writes = lambda name, record: record["role"] == "peer" or name in ("unfused", "many_best")
    words = []
    for size in sorted({x for line in lines.values() for x in line}):
        here = {name: line[size] for name, line in lines.items() if size in line}
        unfused = [record["median_ms"] for name, record in here.items() if writes(name, record)]
        fused = {name: record["median_ms"] for name, record in here.items() if not writes(name, record)}
        if unfused and fused:
            best = min(fused, key=fused.get)
            words.append(f"{size} {min(unfused) / fused[best]:.2f}x ({best})")
    return ", ".join(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a figure would change")
    parser.add_argument("machine", help="a directory of docs/measurements")
    parser.add_argument("days", nargs="*", choices=[[], *PLOTS], help="such as day46; without one, all that were measured")
    arguments = parser.parse_args()
    stale, drawn = [], 0
    for day in arguments.days or PLOTS:
        files = sorted((ROOT / "docs" / "measurements" / arguments.machine).glob(f"{day}_*_plot.jsonl"))
        if not files and arguments.days:
            sys.exit(f"draw_sizes.py: no records of {day}; expected docs/measurements/{arguments.machine}/{day}_*_plot.jsonl")
        for file in files:
            records = record_files.read(file)
            for name, title, axis, pattern in PLOTS[day]:
                lines = curves(records, pattern)
                if not lines:
                    sys.exit(f"draw_sizes.py: {file.name} has no warm record of '{pattern}', for the figure {name}")
                path = ROOT / "docs" / "figures" / f"{day}_sizes_{name}.svg"
                text = figure(lines, title, axis)
                drawn += 1
                if path.exists() and path.read_text() == text:
                    continue
                stale.append(path.name)
                if not arguments.check:
                    path.write_text(text)
            if not arguments.check:
                for name, title, axis, pattern in PLOTS[day]:
                    print(f"{day} {name}: {where_fusion_pays(curves(records, pattern))}")
    if arguments.check and stale:
        sys.exit("\n".join(stale) + f"\nnot those of the records; run scripts/draw_sizes.py {arguments.machine}")
    if not arguments.check:
        print(f"{drawn} figures, {len(stale)} of them new or changed")


if __name__ == "__main__":
    main()
