#!/usr/bin/env python3
"""Draws figures/training.svg from what `day33_lenet_training --train DIRECTORY` wrote. Needs nothing but Python.

make_training_picture.py DIRECTORY
"""

import math
import sys
from pathlib import Path

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; } .small { font-size: 11px; fill: #59636e; }
  .curve { fill: none; stroke: #2f6fde; stroke-width: 1.8; } .axis { stroke: #59636e; stroke-width: 1; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; } .curve { stroke: #6ea0ff; } .axis { stroke: #9198a1; }
  }
"""


def rows(file):
    return [[float(value) for value in line.split(",")] for line in file.read_text().split()]


def picture(values, side, x, y, pixel, colour):
    """A path per colour; squares of equal colour side by side in a row are one rectangle of it."""
    paths, start = {}, 0
    shades = [colour(value) for value in values]
    for i in range(1, len(values) + 1):
        if i % side == 0 or shades[i] != shades[start]:
            width = (i - start) * pixel
            place = f"M{x + start % side * pixel} {y + start // side * pixel}"
            paths[shades[start]] = paths.get(shades[start], "") + f"{place}h{width}v{pixel}h-{width}z"
            start = i
    return "".join(f'<path fill="{shade}" d="{path}"/>' for shade, path in paths.items())


def ink(value):
    shade = 255 - 32 * round(7 * min(max(value, 0), 1))
    return f"rgb({shade},{shade},{shade})"


def signed(scale):
    def colour(value):
        strength = min(abs(value) / scale, 1)
        fade = round(255 * (1 - strength))
        return f"rgb(255,{fade},{fade})" if value > 0 else f"rgb({fade},{fade},255)"

    return colour


def main():
    directory = Path(sys.argv[1])
    curve, filters, digits = (rows(directory / name) for name in ("loss.csv", "filters.csv", "digits.csv"))
    parts = ['<text x="16" y="24" font-weight="600">Digits that the course draws</text>']
    for i, digit in enumerate(digits[:20]):
        parts.append(picture(digit, 28, 16 + i % 10 * 60, 36 + i // 10 * 60, 2, ink))
    parts.append('<text x="16" y="190" font-weight="600">The loss of each batch (logarithmic scale)</text>')
    steps, top = curve[-1][0], math.log10(max(loss for _, loss in curve))
    bottom = math.log10(max(min(loss for _, loss in curve), 1e-4))
    place = lambda step, loss: (
        60 + 300 * step / steps,
        205 + 130 * (top - math.log10(max(loss, 1e-4))) / (top - bottom),
    )
    points = " ".join("{:.1f},{:.1f}".format(*place(step, loss)) for step, loss in curve)
    parts.append(
        f'<polyline class="curve" points="{points}"/>'
        '<line class="axis" x1="60" y1="205" x2="60" y2="335"/><line class="axis" x1="60" y1="335" x2="360" y2="335"/>'
        f'<text class="small" x="16" y="212">{10 ** top:.2f}</text><text class="small" x="16" y="338">{10 ** bottom:.4f}</text>'
        f'<text class="small" x="300" y="352">{steps:.0f} steps</text>'
    )
    parts.append('<text x="400" y="190" font-weight="600">The first layer\'s filters</text>')
    scale = max(abs(value) for one in filters for value in one)
    for i, one in enumerate(filters):
        parts.append(picture(one, 5, 400 + i % 3 * 72, 205 + i // 3 * 72, 12, signed(scale)))
    Path(__file__).with_name("figures").joinpath("training.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 364" role="img" aria-label="Twenty drawn digits, the falling loss '
        f'of the training, and the six learned filters.">\n<style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
