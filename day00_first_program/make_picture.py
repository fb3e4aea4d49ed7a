#!/usr/bin/env python3
"""Draws picture.png, the colour wheel that grayscale.cu is run with. Needs nothing but Python."""

import colorsys
import math
import struct
import zlib
from pathlib import Path

ROWS, COLS = 187, 241  # no multiples of 16: the last blocks have threads without a pixel
RADIUS = 88


def draw(row: int, col: int) -> tuple[int, int, int]:
    y, x = row - ROWS / 2, col - COLS / 2
    distance = math.hypot(x, y)
    if distance > RADIUS:
        return (235, 235, 235) if (row // 12 + col // 12) % 2 else (250, 250, 250)
    hue = round(12 * math.atan2(y, x) / (2 * math.pi)) / 12 % 1
    ring = math.ceil(4 * distance / RADIUS) / 4
    return tuple(round(255 * value) for value in colorsys.hsv_to_rgb(hue, ring, 0.95))


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    lines = b"".join(b"\0" + bytes(v for col in range(COLS) for v in draw(row, col)) for row in range(ROWS))
    header = struct.pack(">IIBBBBB", COLS, ROWS, 8, 2, 0, 0, 0)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
    Path(__file__).with_name("picture.png").write_bytes(png)


if __name__ == "__main__":
    main()
