#!/usr/bin/env python3
"""Joins the frames that a day's program has written to an animated PNG.

./course run day11 --film /tmp/film && scripts/make_film.py /tmp/film day11_stencil/figures/heat.png
./course run day36 --film /tmp/film && scripts/make_film.py /tmp/film day36_graph_traversal/figures/search.png
"""

import pathlib
import struct
import sys
import zlib

MILLISECONDS = 80  # of a frame
LEVELS = 8  # colours are rounded to multiples of 8, which makes the file smaller


def read_ppm(path):
    kind, size, top, pixels = path.read_bytes().split(b"\n", 3)
    if kind != b"P6" or top != b"255":
        sys.exit(f"{path} is not a PPM file of 8-bit colours")
    width, height = map(int, size.split())
    return width, height, bytes(min(255, (value + LEVELS // 2) // LEVELS * LEVELS) for value in pixels)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def compressed(width, height, pixels):
    # Filter 2: each row minus the one above, which is nearly the same.
    rows = [pixels[3 * width * y : 3 * width * (y + 1)] for y in range(height)]
    before = [bytes(3 * width)] + rows[:-1]
    return zlib.compress(
        b"".join(
            b"\2" + bytes((a - b) % 256 for a, b in zip(row, above)) for row, above in zip(rows, before)
        ),
        9,
    )


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    frames = [read_ppm(path) for path in sorted(pathlib.Path(sys.argv[1]).glob("frame*.ppm"))]
    if not frames:
        sys.exit(f"{sys.argv[1]} has no frame*.ppm")
    width, height, _ = frames[0]
    out = [
        b"\x89PNG\r\n\x1a\n",
        chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        chunk(b"acTL", struct.pack(">II", len(frames), 0)),
    ]
    sequence = 0
    for i, (_, _, pixels) in enumerate(frames):
        delay = 10 * MILLISECONDS if i in (0, len(frames) - 1) else MILLISECONDS
        out.append(
            chunk(b"fcTL", struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, delay, 1000, 0, 0))
        )
        sequence += 1
        data = compressed(width, height, pixels)
        if i == 0:
            out.append(chunk(b"IDAT", data))
        else:
            out.append(chunk(b"fdAT", struct.pack(">I", sequence) + data))
            sequence += 1
    out.append(chunk(b"IEND", b""))
    pathlib.Path(sys.argv[2]).write_bytes(b"".join(out))


main()
