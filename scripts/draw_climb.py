#!/usr/bin/env python3
"""Draws the ladder's climb for the front page: each step's speed as percent of cuBLAS, a bar a
step, from measured records.

    scripts/draw_climb.py docs/measurements/h200/gemm_ladder.jsonl docs/figures/climb.svg
    scripts/draw_climb.py --check docs/measurements/h200/gemm_ladder.jsonl docs/figures/climb.svg     # is the picture that of the records?

One problem, warm: the first version of each number from 01 to 14. The picture follows the reader's
choice of a light or a dark page.
"""

import argparse
import pathlib
import re
import sys

import records as record_files

ROW, LEFT, SCALE = 19, 170, 4.2  # pixels: of a row, of the names, of a percent
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f } .quiet { fill: #57606a } .bar { fill: #0072b2 } .past { fill: #d55e00 }
  .rule { stroke: #57606a; stroke-dasharray: 4 3 } .inside { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #9198a1 } .bar { fill: #56b4e9 } .past { fill: #e69f00 } .rule { stroke: #9198a1 }
    .inside { fill: #0d1117 }
  }
"""


def climb(measured, problem):
    """[(name, percent of cuBLAS)] of the versions from 01_ to 14_, the first of each number; and
    cuBLAS's record.
    """
    shown, seen = [], set()
    here = [record for record in measured if record["problem"] == problem and record["l2"] == "warm"]
    peer = next(
        record for record in here if record["role"] == "peer" and record["device"] != record_files.HOST
    )
    for record in here:
        step = re.fullmatch(r"(\d\d)_(\w+)", record["version"])
        if step and 1 <= int(step[1]) <= 14 and step[1] not in seen and record["role"] == "ours":
            seen.add(step[1])
            shown.append(
                (f"{int(step[1])} {step[2].replace('_', ' ')}", 100 * peer["median_ms"] / record["median_ms"])
            )
    return shown, peer


def label(end, y, percent):
    """Beside a short bar, at the end of a long one."""
    if percent < 80:
        return f'  <text class="quiet" x="{end + 6:.0f}" y="{y}">{percent:.0f} %</text>'
    return f'  <text class="inside" x="{end - 6:.0f}" y="{y}" text-anchor="end">{percent:.0f} %</text>'


def picture(steps, peer):
    width, height = LEFT + int(SCALE * 108), ROW * (len(steps) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "  <title>Speed of each step of the ladder as percent of cuBLAS</title>",
        f"  <style>{STYLE}  </style>",
        f'  <text class="quiet" x="{LEFT + 100 * SCALE:.0f}" y="13" text-anchor="middle">cuBLAS</text>',
        f'  <line class="rule" x1="{LEFT + 100 * SCALE:.0f}" x2="{LEFT + 100 * SCALE:.0f}" y1="18" y2="{ROW * (len(steps) + 1)}"/>',
    ]
    for row, (name, percent) in enumerate(steps, 1):
        y = ROW * row
        lines += [
            f'  <text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{name}</text>',
            f'  <rect class="{"bar" if percent < 100 else "past"}" x="{LEFT}" y="{y + 3}" width="{SCALE * percent:.1f}" height="{ROW - 5}" rx="2"/>',
            label(LEFT + SCALE * percent, y + 14, percent),
        ]
    lines += [
        f'  <text class="quiet" x="{LEFT}" y="{height - 4}">{peer["problem"]}, {peer["device"]}, {peer["date"][:10]}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if the picture is another one"
    )
    parser.add_argument("--problem", default="sgemm 4096x4096x4096")
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument("figure", type=pathlib.Path)
    arguments = parser.parse_args()
    drawn = picture(*climb(record_files.read(arguments.records), arguments.problem))
    if not arguments.check:
        arguments.figure.write_text(drawn)
    elif not arguments.figure.exists() or arguments.figure.read_text() != drawn:
        sys.exit(
            f"{arguments.figure}: not that of {arguments.records}; draw it again with scripts/draw_climb.py"
        )


if __name__ == "__main__":
    main()
