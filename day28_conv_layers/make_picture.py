#!/usr/bin/env python3
"""Draws figures/unrolled.svg: a 3 x 3 filter on a 4 x 4 image, and the columns that it becomes.
Needs nothing but Python.
"""

from pathlib import Path

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 11px; fill: #59636e; } .in { font: 11px ui-monospace, monospace; text-anchor: middle; }
  .cell { fill: #eef1f4; stroke: #ffffff; } .one { fill: #f2a65a; stroke: #ffffff; } .two { fill: #8fb4f5; stroke: #ffffff; }
  .both { fill: #b79ad9; stroke: #ffffff; } .y { fill: #7fd1ae; stroke: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; } .cell { fill: #262c34; stroke: #0d1117; }
    .one { fill: #9a5a1c; stroke: #0d1117; } .two { fill: #28509e; stroke: #0d1117; }
    .both { fill: #624a86; stroke: #0d1117; } .y { fill: #1f7a55; stroke: #0d1117; }
  }
"""
SIDE = 30
lines = []


def cell(x, y, text, kind):
    lines.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{SIDE - 2}" height="{SIDE - 2}" rx="3"/>')
    if text:
        lines.append(f'<text class="in" x="{x + SIDE / 2 - 1}" y="{y + SIDE / 2 + 3}">{text}</text>')


def kind_of(row, col):
    first = row < 3 and col < 3  # under output 0
    second = row < 3 and col > 0  # under output 1
    return "both" if first and second else "one" if first else "two" if second else "cell"


def label(x, y, text, kind=""):
    lines.append(f'<text{kind} x="{x}" y="{y}">{text}</text>')


SMALL = ' class="small"'
label(16, 24, "An image, and its patches as columns", ' font-weight="600"')
label(30, 62, "x: 4 x 4", SMALL)
for row in range(4):
    for col in range(4):
        cell(30 + col * SIDE, 72 + row * SIDE, f"x{row * 4 + col}", kind_of(row, col))
label(30, 214, "orange and violet: under y0", SMALL)
label(30, 232, "blue and violet: under y1", SMALL)

label(210, 180, "w: K x 9", SMALL)
for i in range(9):
    cell(210 + i * SIDE, 190, f"w{i}", "cell")
label(490, 208, "times", SMALL)

label(540, 62, "columns: 9 x 4, one for each output", SMALL)
for output in range(4):
    for tap in range(9):
        row, col = output // 2 + tap // 3, output % 2 + tap % 3
        kind = kind_of(row, col)
        if output > 1 or (kind == "one" and output == 1) or (kind == "two" and output == 0):
            kind = "cell"
        cell(540 + output * SIDE, 72 + tap * SIDE, f"x{row * 4 + col}", kind)
label(672, 208, "=", "")
label(690, 180, "y: K x 4", SMALL)
for output in range(4):
    cell(690 + output * SIDE, 190, f"y{output}", "y")

words = (
    "A 4 x 4 image with two overlapping 3 x 3 patches. Each of the four patches becomes a column of nine elements; the row of "
    "nine weights times the nine by four matrix gives the four outputs."
)
Path(__file__).with_name("figures").joinpath("unrolled.svg").write_text(
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 356" role="img" aria-label="{words}">\n<style>{STYLE}</style>\n'
    + "\n".join(lines)
    + "\n</svg>\n"
)
