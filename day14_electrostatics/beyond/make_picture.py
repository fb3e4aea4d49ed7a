#!/usr/bin/env python3
"""Makes ../figures/molecule.png from the PGM that the program day14_electrostatics_slice prints:

    build/cpu/bin/day14_electrostatics_slice | day14_electrostatics/beyond/make_picture.py

Needs nothing but Python. Every point becomes 2 x 2 pixels. Blue is positive, red negative, in eight
steps of opacity each, and a potential near 0 is transparent: so one picture is for light and dark
pages.
"""

import struct
import sys
import zlib
from pathlib import Path

POSITIVE, NEGATIVE = (37, 99, 235), (220, 38, 38)
# Of 127, where the next step begins: each is 1.6 times the one before.
STEPS = [round(127 / 1.6 ** (7 - i)) for i in range(8)]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def colour(value: int) -> int:
    """The number in the palette: 0 transparent, 1 to 8 positive, 9 to 16 negative."""
    level = sum(abs(value - 128) >= step for step in STEPS)
    return level + 8 if level and value < 128 else level


def main() -> None:
    words = sys.stdin.read().split()
    columns, rows = int(words[1]), int(words[2])
    values = [colour(int(word)) for word in words[4:]]
    lines = b""
    for row in range(rows):
        line = values[row * columns : (row + 1) * columns]
        lines += 2 * (b"\0" + bytes(value for value in line for _ in range(2)))
    palette = bytes((128, 128, 128)) + 8 * bytes(POSITIVE) + 8 * bytes(NEGATIVE)
    opacity = bytes([0]) + 2 * bytes(30 * level + 15 for level in range(1, 9))
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 2 * columns, 2 * rows, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette)
        + chunk(b"tRNS", opacity)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
    figures = Path(__file__).resolve().parent.parent / "figures"
    (figures / "molecule.png").write_bytes(png)


if __name__ == "__main__":
    main()
