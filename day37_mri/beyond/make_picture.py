#!/usr/bin/env python3
"""Makes ../figures/reconstructed.png from the PGM that the program day37_mri_reconstruct prints:

    build/cpu/bin/day37_mri_reconstruct | day37_mri/beyond/make_picture.py

Needs nothing but Python. Every voxel becomes 2 x 2 pixels.
"""

import struct
import sys
import zlib
from pathlib import Path


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    words = sys.stdin.read().split()
    columns, rows = int(words[1]), int(words[2])
    values = bytes(int(word) for word in words[4:])
    lines = b""
    for row in range(rows):
        line = values[row * columns : (row + 1) * columns]
        lines += 2 * (b"\0" + bytes(value for value in line for _ in range(2)))
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 2 * columns, 2 * rows, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
    figures = Path(__file__).resolve().parent.parent / "figures"
    (figures / "reconstructed.png").write_bytes(png)


if __name__ == "__main__":
    main()
