#!/usr/bin/env python3
"""Draws the three pictures of day 6's README into the directory of this script."""

from pathlib import Path

STYLE = """<style>
 text{font-family:system-ui,sans-serif;fill:#59636e;font-size:12px}
 .h{font-size:15px;font-weight:600;fill:#1f2328} .n{font-size:10px;text-anchor:middle} .m{text-anchor:middle}
 .c{fill:#eef1f4;stroke:#d1d9e0} .a{fill:#2f6fb3} .b{fill:#c2591a} .f{fill:#9cc3ea}
 .on{fill:#fff;font-weight:600} .l{stroke:#818b98;stroke-width:1.5;fill:none} .d{stroke:#59636e;stroke-width:1.5}
 @media (prefers-color-scheme:dark){text{fill:#9198a1}.h{fill:#e6edf3}.c{fill:#262c36;stroke:#3d444d}
 .a{fill:#4c8fd6}.b{fill:#e0803f}.f{fill:#28507a}.on{fill:#0d1117}.l{stroke:#9198a1}.d{stroke:#9198a1}}
</style>"""


class Picture:
    def __init__(self, width, height, label):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{label}">',
            STYLE,
        ]

    def rect(self, x, y, w, h, kind="c"):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" class="{kind}"/>')

    def text(self, x, y, words, kind=""):
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}"' + (f' class="{kind}"' if kind else "") + f">{words}</text>"
        )

    def line(self, x1, y1, x2, y2, kind="l"):
        self.parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{kind}"/>')

    def arrow(self, x1, y, x2):
        self.line(x1, y, x2, y)
        self.parts.append(f'<path d="M{x2 - 6:g} {y - 4:g}L{x2:g} {y:g}L{x2 - 6:g} {y + 4:g}" class="l"/>')

    def save(self, name):
        Path(__file__).with_name(name).write_text("\n".join(self.parts + ["</svg>", ""]))


def matrix(picture, x, y, hot, cell=14):
    """8 x 8 elements; hot(row, col) is their class."""
    for row in range(8):
        for col in range(8):
            picture.rect(x + col * cell, y + row * cell, cell - 2, cell - 2, hot(row, col) or "c")


def warp_rows():
    picture = Picture(700, 440, "What one warp loads from in and stores to out: rows or columns")
    row_3 = lambda row, col: "a" if row == 3 else None
    col_3 = lambda row, col: "b" if col == 3 else None
    cases = [
        ("naive", row_3, col_3, "loads a row of in: 4 sectors", "stores a column of out: 32 sectors"),
        ("strided_loads", col_3, row_3, "loads a column of in: 32 sectors", "stores a row of out: 4 sectors"),
        ("tiled", row_3, row_3, "loads a row of in: 4 sectors", "stores a row of out: 4 sectors"),
    ]
    for i, (name, load, store, load_text, store_text) in enumerate(cases):
        y = 20 + i * 142
        picture.text(20, y + 14, name, "h")
        matrix(picture, 140, y, load)
        matrix(picture, 440, y, store)
        picture.text(140, y + 126, load_text)
        picture.text(440, y + 126, store_text)
        if name != "tiled":
            picture.arrow(268, y + 48, 422)
            picture.text(345, y + 38, "registers", "m")
        else:
            picture.arrow(268, y + 48, 306)
            matrix(picture, 316, y + 20, lambda row, col: "a" if row == 3 else "b" if col == 3 else None, 8)
            picture.arrow(390, y + 48, 428)
            picture.text(347, y + 100, "tile", "m")
    picture.save("warp_rows.svg")


def banks():
    picture = Picture(760, 352, "Banks of a column of a tile: plain, padded and swizzled")
    layouts = [
        ("plain", 8, lambda y, x: x),
        ("padded by one word", 9, lambda y, x: x),
        ("swizzled: x ^ y", 8, lambda y, x: x ^ y),
    ]
    cell = 24
    for i, (name, pitch, place) in enumerate(layouts):
        left = 20 + i * 250
        column = 2
        serves = [0] * 8
        picture.text(left, 20, name, "h")
        for y in range(8):
            for slot in range(pitch):
                picture.rect(left + slot * cell, 32 + y * cell, cell - 2, cell - 2)
            hot = place(y, column)
            bank = (y * pitch + hot) % 8
            serves[bank] += 1
            picture.rect(left + hot * cell, 32 + y * cell, cell - 2, cell - 2, "a")
            for slot in range(pitch):
                picture.text(
                    left + slot * cell + 11,
                    47 + y * cell,
                    str((y * pitch + slot) % 8),
                    "n on" if slot == hot else "n",
                )
        for bank, words in enumerate(serves):
            for word in range(words):
                picture.rect(left + bank * cell, 280 - word * 5, cell - 2, 4, "b" if words > 1 else "a")
            picture.text(left + bank * cell + 11, 298, str(bank), "n")
        picture.text(left, 318, f"a column: {max(serves)} wavefront{'s' if max(serves) > 1 else ''}")
    picture.text(
        20,
        342,
        "Cells: words of shared memory, with their banks. Bars: how many words of the column each bank has to serve.",
    )
    picture.save("banks.svg")


def sectors():
    picture = Picture(780, 330, "Rows of out whose length is not a multiple of a sector")
    word = 10
    for i, (name, shifted) in enumerate(
        [("tiles begin at an element", False), ("tiles begin at a sector", True)]
    ):
        left = 60 + i * 380
        picture.text(left, 20, name, "h")
        for row in range(9):
            y = 44 + row * 24
            shift = row % 8  # the row begins so many words into a sector
            picture.text(left - 50, y + 13, f"row {row}")
            for w in range(32):
                element = w - shift  # of the row, counted from where the picture begins
                begin = 8 - (shift if shifted else 0)
                inside = begin <= element < begin + 16
                kind = "c"
                if inside:
                    sector = w // 8 * 8
                    full = all(begin <= s - shift < begin + 16 for s in range(sector, sector + 8))
                    kind = "a" if full else "b"
                picture.rect(left + w * word, y, word - 1, 18, kind)
        for boundary in range(5):
            picture.line(left + boundary * 80 - 0.5, 34, left + boundary * 80 - 0.5, 262, "d")
        picture.text(left, 282, "vertical lines: sectors of 32 bytes, eight words each")
    picture.rect(70, 298, 14, 14, "a")
    picture.text(90, 310, "a block stores the whole sector")
    picture.rect(300, 298, 14, 14, "b")
    picture.text(320, 310, "a block stores a part of the sector, its neighbour the rest")
    picture.save("sectors.svg")


if __name__ == "__main__":
    warp_rows()
    banks()
    sectors()
