#!/usr/bin/env python3
"""Draws picture.png, the small picture that day 10 blurs when it is given no other. Needs nothing
but Python.
"""

import struct
import zlib
from pathlib import Path

ROWS, COLS = 240, 320
LETTERS = {  # 5 x 7 strokes
    "B": "11110 10001 10001 11110 10001 10001 11110",
    "L": "10000 10000 10000 10000 10000 10000 11111",
    "U": "10001 10001 10001 10001 10001 10001 01110",
    "R": "11110 10001 10001 11110 10100 10010 10001",
}


def background(y: int, x: int) -> tuple[int, int, int]:
    return (60 + x * 160 // COLS, 90 + y * 120 // ROWS, 200 - x * 120 // COLS)


def checkerboard(y: int, x: int) -> bool:
    size = 4 + 4 * ((x - 16) // 48)  # coarser to the right
    return (y // size + x // size) % 2 == 0


def draw(y: int, x: int) -> tuple[int, int, int]:
    colour = background(y, x)
    if 16 <= y < 96 and 16 <= x < 160:
        colour = (20, 20, 20) if checkerboard(y, x) else (240, 240, 240)
    distance = ((y - 62) ** 2 + (x - 240) ** 2) ** 0.5
    if distance < 52:
        colour = (230, 60, 40) if int(distance) // 6 % 2 else (250, 220, 120)
    for place, letter in enumerate("BLUR"):
        row, col = (y - 120) // 13, (x - 24 - place * 72) // 11
        if 0 <= row < 7 and 0 <= col < 5 and LETTERS[letter].split()[row][col] == "1":
            colour = (250, 250, 250)
    if 222 <= y < 234 and 16 <= x < 304 and (x - 16) % 24 in (0, 1, 4, 5, 6, 12):
        colour = (0, 0, 0)
    return colour


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    lines = b"".join(b"\0" + bytes(v for x in range(COLS) for v in draw(y, x)) for y in range(ROWS))
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
