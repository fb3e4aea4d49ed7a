"""Day 24: whom a tile waits for, in domino and in a look-back; the status words that one tile adds up."""

from figures.svg import Figure

SUMS = [3, 1, 4, 1, 5, 9, 2, 6]  # of the tiles
PREFIXES = [sum(SUMS[: tile + 1]) for tile in range(len(SUMS))]
CELL, STEP, LEFT = 58, 70, 132


def x_of(tile):
    return LEFT + tile * STEP


def look_back():
    """Tile 7 asks for the sum of the tiles before it. The blocks of tiles 0 to 2 have published their prefixes."""
    known, last = 2, len(SUMS) - 1
    figure = Figure(
        712,
        372,
        "Eight tiles. In domino, tile 7 waits for the prefix of tile 6, which waits for that of tile 5, and so on. "
        "In a look-back, tile 7 adds up the sums of tiles 6, 5, 4 and 3 and the prefix of tile 2",
    )
    figure.text(16, 22, "Who waits for whom", "t")
    figure.text(16, 68, "tile")
    for tile in range(len(SUMS)):
        figure.text(x_of(tile) + CELL / 2, 68, tile, "m")

    figure.text(16, 106, "domino", "t")
    for tile, prefix in enumerate(PREFIXES):
        is_known = tile <= known
        figure.cell(x_of(tile), 86, CELL, 32, "w1" if is_known else "idle", prefix if is_known else "waits")
        if tile > 0:
            figure.arrow(x_of(tile) - (STEP - CELL), 102, x_of(tile) - 1, 102, hot=tile > known)
    figure.text(16, 144, "Tile 7 has to wait for four prefixes, which appear one after the other.", "s")

    figure.text(16, 212, "look-back", "t")
    for tile in range(last):
        is_known = tile <= known
        figure.cell(
            x_of(tile), 192, CELL, 32, "w1" if is_known else "f2", PREFIXES[tile] if is_known else SUMS[tile]
        )
    figure.cell(x_of(last), 192, CELL, 32, "idle", "looks")
    middle = x_of(last) + CELL / 2
    for tile in range(known, last):
        x = x_of(tile) + CELL / 2
        figure.path(f"M{x:g},226L{x:g},{262:g}", hot=True)
    figure.line(x_of(known) + CELL / 2, 266, middle, 266, "arrow hot")
    figure.path(f"M{middle:g},266L{middle:g},227", hot=True)
    terms = [PREFIXES[known], *SUMS[known + 1 : last]]
    assert sum(terms) == PREFIXES[last - 1]
    figure.text(
        x_of(known) + CELL / 2, 288, " + ".join(map(str, terms)) + f" = {sum(terms)}: the sum of all tiles before tile 7", "n"
    )
    figure.key(16, 312, [("w1", "prefix: of the tile and all before it"), ("f2", "sum: of the tile alone"), ("idle", "empty")])
    figure.text(16, 354, "The four sums were published at the same time. Tiles left of the nearest prefix are not read.", "s")
    return figure.svg()


FIGURES = {"look_back": look_back}
