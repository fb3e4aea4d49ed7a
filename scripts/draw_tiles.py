#!/usr/bin/env python3
"""Draws how fast step 12 of the ladder is with other tiles: which of its parameters matter?

    cmake --build build/gpu --target gemm_ladder_tiles
    build/gpu/bin/gemm_ladder_tiles --bench --json docs/measurements/h200/gemm_ladder_tiles.jsonl
    scripts/draw_tiles.py h200             # docs/figures/gemm_ladder_tiles.svg
    scripts/draw_tiles.py --check h200     # is the figure that of the records?

Warm records. The figure has a strip for each parameter and a column for each of its values; every
set of parameters is a dot in each strip, and the fastest of a column has a ring and its rate. It
follows the reader's choice of a light or a dark page. Printed: what the best set loses when one
parameter is fixed to another value and all others are free.
"""

import argparse
import math
import pathlib
import re
import sys

import records as record_files
from draw_sizes import rate, step_of
from figures.svg import Figure

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBLEM = r"sgemm (\d+)x\1x\1"
VERSION = r"(\d+)x(\d+)x(\d+)_(\d+)x(\d+)_(\d+)x(\d+)_(\d+)"  # gemm_ladder/tune/sweep.hpp
STRIPS = [  # (title, value of a set; parameters: BM BN BK WM WN TM TN stages)
    ("block, BM x BN", lambda p: (p[0], p[1])),
    ("warp, WM x WN", lambda p: (p[3], p[4])),
    ("thread, TM x TN", lambda p: (p[5], p[6])),
    ("BK", lambda p: (p[2],)),
    ("stages", lambda p: (p[7],)),
]
# Colours by the results of a thread.
RESULTS = [16, 32, 64, 128]

WIDTH, HEIGHT = 900, 400
LEFT, TOP, BOTTOM = 44, 62, 84  # margins: TFLOP/s; title and key; values
GAP = 18  # between strips
STYLE = """<style>
 .grid { stroke: #d1d9e0; stroke-width: 1 } .dot { fill-opacity: .55 } .best { fill: none; stroke: #1f2328; stroke-width: 1.6 }
 @media (prefers-color-scheme: dark) { .grid { stroke: #3d444d } .dot { fill-opacity: .75 } .best { stroke: #e6edf3 } }
</style>"""


def sets_of(records):
    """{(BM, BN, BK, WM, WN, TM, TN, stages): record} of the warm, verified records of the largest square."""
    found = {}
    for record in records:
        problem, version = re.fullmatch(PROBLEM, record["problem"]), re.fullmatch(VERSION, record["version"])
        if problem and version and record["l2"] == "warm" and record["verified"]:
            found.setdefault(int(problem[1]), {})[tuple(map(int, version.groups()))] = record
    return found[max(found)] if found else {}


def columns(sets, value_of):
    """{value: {parameters: record}}, by rising value."""
    found = {}
    for parameters in sorted(sets, key=lambda p: (math.prod(value_of(p)), value_of(p), p)):
        found.setdefault(value_of(parameters), {})[parameters] = sets[parameters]
    return found


def fastest(sets):
    return max(sets, key=lambda parameters: rate(sets[parameters]))


def name_of(value):
    return "x".join(map(str, value))


def losses(sets):
    """A line for each parameter: its values with the rate of the fastest set of each, beside the fastest of all."""
    best = rate(sets[fastest(sets)])
    return [
        f"{title}: "
        + ", ".join(
            f"{name_of(value)} {rate(column[fastest(column)]) / best - 1:+.1%}"
            for value, column in columns(sets, value_of).items()
        )
        for title, value_of in STRIPS
    ]


def figure(sets):
    """The plot as SVG text. `sets`: what sets_of() returns."""
    best = fastest(sets)
    record = sets[best]
    bm, bn, bk, wm, wn, tm, tn, stages = best
    winner = f"{bm}x{bn}x{bk}, warp {wm}x{wn}, thread {tm}x{tn}, {stages} stages"
    title = f"{len(sets)} sets of tile sizes, {record['problem'].replace('sgemm ', 'SGEMM ')}"
    drawn = Figure(WIDTH, HEIGHT, f"{title}. Fastest: {winner}, {rate(record):.1f} TFLOP/s. {'; '.join(losses(sets))}")
    drawn.parts.append(STYLE)
    highest = max(map(rate, sets.values()))
    step = step_of(highest)
    top = step * math.ceil(highest * 1.04 / step)

    def y_of(tflops):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - tflops / top)

    drawn.text(LEFT, 18, title, "t")
    drawn.text(WIDTH - 350, 18, "results of a thread:", "s")
    drawn.key(WIDTH - 220, 7, [(f"w{i}", str(results)) for i, results in enumerate(RESULTS)])
    drawn.text(LEFT - 8, TOP - 10, "TFLOP/s", "s")
    strips = [(title, columns(sets, value_of)) for title, value_of in STRIPS]
    width = (WIDTH - LEFT - 12 - GAP * (len(strips) - 1)) / sum(len(strip) for _, strip in strips)
    for i in range(round(top / step) + 1):
        drawn.text(LEFT - 8, y_of(i * step) + 4.5, f"{i * step:g}", "s e")
    left = LEFT
    for title, strip in strips:
        right = left + width * len(strip)
        for i in range(round(top / step) + 1):
            drawn.line(round(left, 1), round(y_of(i * step), 1), round(right, 1), round(y_of(i * step), 1), "grid")
        drawn.text(round((left + right) / 2, 1), y_of(0) + 50, title, "n m")
        for column, (value, here) in enumerate(strip.items()):
            middle = left + width * (column + 0.5)
            # A pair does not fit on one line.
            for line, number in enumerate(value):
                more = " x" if line + 1 < len(value) else ""
                drawn.text(round(middle, 1), y_of(0) + 17 + 14 * line, f"{number}{more}", "p m")
            for i, (parameters, one) in enumerate(here.items()):
                # Beside each other in the order of the list, so that dots of equal rates stay apart.
                x = middle + width * 0.7 * ((i + 0.5) / len(here) - 0.5)
                kind = RESULTS.index(parameters[5] * parameters[6])
                drawn.circle(round(x, 1), round(y_of(rate(one)), 1), 2.6, f"dot w{kind}")
                if parameters == fastest(here):
                    drawn.circle(round(x, 1), round(y_of(rate(one)), 1), 4.6, "best")
                    drawn.text(round(middle, 1), round(y_of(rate(one)) - 9, 1), f"{rate(one):.1f}", "p m")
        left = right + GAP
    drawn.text(
        LEFT, HEIGHT - 8, f"fastest: {winner}. Warm, {record['device']}, {record['date'][:10]}", "s"
    )
    return drawn.svg()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the figure would change")
    parser.add_argument("machine", help="a directory of docs/measurements")
    arguments = parser.parse_args()
    file = ROOT / "docs" / "measurements" / arguments.machine / "gemm_ladder_tiles.jsonl"
    path = ROOT / "docs" / "figures" / "gemm_ladder_tiles.svg"
    if not file.exists():
        if arguments.check and not path.exists():
            return  # not measured yet
        sys.exit(f"draw_tiles.py: no records; expected {file.relative_to(ROOT)}")
    sets = sets_of(record_files.read(file))
    if not sets:
        sys.exit(f"draw_tiles.py: {file.name} has no warm record of a square 'sgemm NxNxN' with a tile as its version")
    text = figure(sets)
    if not path.exists() or path.read_text() != text:
        if arguments.check:
            sys.exit(f"{path.name} is not that of the records; run scripts/draw_tiles.py {arguments.machine}")
        path.write_text(text)
    if not arguments.check:
        print("\n".join(losses(sets)))


if __name__ == "__main__":
    main()
