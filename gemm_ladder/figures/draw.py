#!/usr/bin/env python3
"""Draws the pictures of the ladder's README: tiles.svg, warp_tile.svg, split_k.svg, beside this
file. Only the standard library.
"""

import pathlib

HERE = pathlib.Path(__file__).parent
STYLE = """<style>
 text{font-family:system-ui,sans-serif;font-size:13px;fill:#1f2328} .t{font-weight:600;font-size:14px} .s{font-size:12px;fill:#59636e}
 .f{fill:none;stroke:#7d8590;stroke-width:1} .g{stroke:#7d8590;stroke-width:.5} .a{fill:#d9822b} .b{fill:#2f81c7} .c{fill:#2f9e6e} .d{fill:#a36bc4}
 .l{opacity:.35} .r{fill:none;stroke:#7d8590;stroke-width:1.5}
 @media (prefers-color-scheme:dark){text{fill:#e6edf3} .s{fill:#9198a1}}
</style>"""


def svg(name, width, height, title, parts):
    body = "\n".join(parts)
    (HERE / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">\n'
        f"{STYLE}\n{body}\n</svg>\n"
    )


def box(x, y, w, h, kind="f"):
    return f'<rect x="{x}" y="{y}" width="{w}" height="{h}" class="{kind}"/>'


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}" class="{kind}">{words}</text>'


def grid(x, y, w, h, nx, ny):
    lines = [f'<path class="g" d="M{x + w * i / nx:g} {y}v{h}"/>' for i in range(1, nx)]
    return lines + [f'<path class="g" d="M{x} {y + h * i / ny:g}h{w}"/>' for i in range(1, ny)]


def tiles():
    parts = []
    # The whole product: A below left, B above, C.
    x, y, cell = 120, 140, 40
    parts += [
        box(x + 2 * cell, y - 110, cell, 100, "b l"),
        box(x, y - 110, 160, 100),
        text(x + 6, y - 116, "B, K x N"),
    ]
    parts += [
        box(x - 110, y + cell, 100, cell, "a l"),
        box(x - 110, y, 100, 160),
        text(x - 110, y + 178, "A, M x K"),
    ]
    parts += [box(x + 2 * cell, y + cell, cell, cell, "c"), box(x, y, 160, 160), *grid(x, y, 160, 160, 4, 4)]
    parts += [text(x, y + 178, "C, M x N: a block for each tile")]
    parts += [box(x - 50, y + cell, 16, cell, "a"), box(x + 2 * cell, y - 54, cell, 16, "b")]
    parts += [text(x - 110, y + 200, "dark: the BM x BK and BK x BN tiles of this step along K", "s")]
    # The block's tile with one thread's results.
    x, y, n = 420, 140, 16
    side = 160 / n
    parts += [
        text(x, y - 60, "A block's tile, BM x BN", "t"),
        text(x, y - 44, "A thread's TM x TN results (in fours: step 6 on).", "s"),
        text(x, y - 28, "TM + TN values serve TM x TN multiply-adds.", "s"),
    ]
    parts += [box(x, y - 16, 160, 10, "b l"), box(x - 16, y, 10, 160, "a l")]
    for row in (3, 11):
        parts.append(box(x - 16, y + row * side, 10, side, "a"))
    for col in (5, 13):
        parts.append(box(x + col * side, y - 16, side, 10, "b"))
    parts += [box(x + col * side, y + row * side, side, side, "c") for row in (3, 11) for col in (5, 13)]
    parts += [box(x, y, 160, 160), text(x, y + 178, "each green square: 4 x 4 of C")]
    # What a thread loads.
    x = 730
    parts += [
        text(x, y - 60, "What a thread loads (step 6)", "t"),
        text(x, y - 44, "A float4 of A's tile, stored transposed,", "s"),
        text(x, y - 28, "and a float4 of B's, stored as it is.", "s"),
    ]
    parts += [
        box(x, y, 32, 128, "a l"),
        box(x, y + 40, 16, 8, "a"),
        box(x, y, 32, 128),
        text(x, y + 146, "128 x 8 of A", "s"),
    ]
    parts += [
        text(x + 46, y + 50, "&#8594;"),
        box(x + 70, y + 36, 128, 32, "a l"),
        *[box(x + 110, y + 36 + 8 * i, 8, 8, "a") for i in range(2)],
        box(x + 70, y + 36, 128, 32),
        text(x + 70, y + 84, "a_tile[8][128]", "s"),
    ]
    parts += [
        box(x + 70, y + 104, 128, 32, "b l"),
        box(x + 118, y + 112, 16, 8, "b"),
        box(x + 70, y + 104, 128, 32),
        text(x + 70, y + 152, "b_tile[8][128]", "s"),
    ]
    svg("tiles.svg", 990, 350, "Tiles of A, B and C; a thread's results; what a thread loads", parts)


def warp_tile():
    parts = []
    for x, title, rows, cols, bands, note in (
        (
            20,
            "Step 7: a warp has 16 x 128",
            8,
            128,
            ((0, 8), (64, 8)),
            ("16 + 128 = 144 words for each k", "2048 multiply-adds: 14 for each word"),
        ),
        (
            330,
            "Step 9: a warp has 64 x 64",
            64,
            64,
            ((0, 64),),
            ("64 + 64 = 128 words for each k", "4096 multiply-adds: 32 for each word"),
        ),
    ):
        y, scale = 70, 1.5
        parts += [
            text(x, 24, title, "t"),
            box(x + 24, y, 192, 192),
            *grid(x + 24, y, 192, 192, 128 // cols, 128 // rows),
        ]
        for first, height in bands:
            parts += [
                box(x + 24, y + first * scale, cols * scale, height * scale, "c"),
                box(x + 8, y + first * scale, 10, height * scale, "a"),
            ]
        parts.append(box(x + 24, y - 16, cols * scale, 10, "b"))
        parts += [text(x, 286 + 18 * i, line, "s") for i, line in enumerate(note)]
    x, y = 640, 70
    parts += [
        text(x, 24, "Its 4 x 8 lanes", "t"),
        text(x, 42, "16 x 8 results each, in fours", "s"),
        box(x, y, 192, 192),
        *grid(x, y, 192, 192, 16, 16),
    ]
    parts += [
        box(x + (3 + 8 * j) * 12, y + (1 + 4 * i) * 12, 12, 12, "d") for i in range(4) for j in range(2)
    ]
    parts += [
        text(x, 286, "LANES_M = 4 fours apart downwards,", "s"),
        text(x, 304, "LANES_N = 8 fours apart to the right", "s"),
    ]
    svg(
        "warp_tile.svg",
        900,
        320,
        "Which results a warp has in step 7 and in step 9, and a lane of step 9",
        parts,
    )


def split_k():
    parts = []
    x, y, step = 130, 60, 60
    parts += [text(20, 24, "One tile of C, two blocks, K = 8 tiles (step 11)", "t")]
    for split, kind in ((0, "a"), (1, "b")):
        row = y + 46 * split
        parts += [text(20, row + 20, f"block 2t + {split}")]
        parts += [box(x + step * i, row, step - 4, 30, kind if i % 2 == split else "f") for i in range(8)]
        parts += [text(x + step * i + 22, row + 20, str(i)) for i in range(8) if i % 2 == split]
        parts += [
            text(x + 8 * step + 8, row + 20, "&#8594;"),
            box(x + 8 * step + 34, row, 90, 30, kind + " l"),
            text(x + 8 * step + 42, row + 20, "sums"),
        ]
    parts += [
        f'<path class="r" d="M{x + 8 * step + 128} {y + 15}h20v46h-20M{x + 8 * step + 148} {y + 38}h16"/>',
        box(x + 8 * step + 168, y + 23, 70, 30, "c"),
        text(x + 8 * step + 178, y + 43, "tile of C"),
    ]
    parts += [
        text(x, y + 104, "tiles along K: every second one for each block", "s"),
        text(x + 8 * step - 40, y + 104, "scratch memory: a second kernel adds up", "s"),
    ]
    svg("split_k.svg", 900, 190, "Split-K: two blocks share a tile of C", parts)


tiles()
warp_tile()
split_k()
