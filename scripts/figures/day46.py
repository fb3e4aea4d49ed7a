"""Day 46: what happens to the tiles of a row while they are in registers."""

from figures.svg import Figure

BN, LANES_N, PER_LANE = 256, 8, 8  # columns of a tile; lanes of a warp with the same rows; columns of a lane
TILE = 2  # the tile that the figure shows
SUMS = [31, 17, 44, 23, 58, 12, 39, 27]  # one row of a thread, in that tile
BEFORE = (15, 80)  # the state of tiles 0 and 1
STATES = [12, 9, 20, 14, 7, 33, 16, 11]  # of the eight lanes, at the end


def column(lane, j):
    """place_of<LANES_N>: a lane has groups of four adjacent columns."""
    return TILE * BN + j // 4 * LANES_N * 4 + lane * 4 + j % 4


def reduce_in_registers():
    """A row of tiles, one row of sums of a thread, and the merging of the lanes."""
    figure = Figure(
        752,
        498,
        "A block walks along a row of tiles of a matrix that is never written. Each thread reduces its sums of a tile to the smallest "
        "one and its column, and merges it into a state. After the last tile, eight lanes merge their states by three shuffles",
    )
    figure.text(16, 22, "1. A block stays in one row of tiles", "t")
    tiles, x0, width = 5, 16, 112
    for tile in range(tiles):
        kind = "idle" if tile < TILE else "w0" if tile == TILE else "cell"
        words = "done" if tile < TILE else "in registers" if tile == TILE else ""
        figure.cell(x0 + tile * width, 36, width - 4, 46, kind, words)
    figure.arrow(x0 + tiles * width + 4, 59, x0 + tiles * width + 44, 59)
    figure.text(x0, 102, "The matrix of distances is never written: a tile exists only as sums of the threads, 16 x 8 in each.", "s")

    figure.text(16, 146, "2. A thread reduces each of its 16 rows of a tile", "t")
    figure.text(16, 180, "column", "s")
    figure.text(16, 208, "sums")
    cell = 54
    columns = [column(0, j) for j in range(PER_LANE)]
    best = min(range(PER_LANE), key=lambda j: SUMS[j])
    for j, (col, value) in enumerate(zip(columns, SUMS)):
        x = 84 + j * cell
        figure.text(x + cell / 2 - 2, 180, col, "s m")
        figure.cell(x, 190, cell - 4, 28, "w0" if j == best else "f0", value)
    state = min(BEFORE, (SUMS[best], columns[best]))
    x = 84 + best * cell + cell / 2 - 2
    figure.path(f"M{x:g},220L{x:g},246", hot=True)
    figure.cell(x - 74, 250, 148, 28, "w0", f"{SUMS[best]} in column {columns[best]}")
    figure.text(16, 269, "state before")
    figure.cell(108, 250, 148, 28, "f1", f"{BEFORE[0]} in column {BEFORE[1]}")
    figure.arrow(x + 76, 264, x + 108, 264)
    figure.arrow(258, 264, x - 76, 264)
    figure.text(x + 112, 269, "state after")
    figure.cell(x + 192, 250, 148, 28, "w1", f"{state[0]} in column {state[1]}")
    figure.text(16, 300, "The 16 states of a thread are in shared memory, so that they take no registers from the main loop.", "s")

    figure.text(16, 344, "3. After the last tile, eight lanes have states of the same row", "t")
    level, y, cell = STATES, 358, 86
    smallest = min(STATES)
    for lane, value in enumerate(level):
        figure.cell(16 + lane * cell, y, cell - 6, 26, "w1" if value == smallest else "f1", f"lane {lane}: {value}")
    level, y = STATES, 402
    for distance in (1, 2, 4):
        level = [min(level[lane], level[lane ^ distance]) for lane in range(LANES_N)]
        figure.text(16, y + 6, f"shuffle by {distance}:", "s")
        figure.text(118, y + 6, ",  ".join(map(str, level)), "n")
        y += 22
    assert set(level) == {smallest}
    figure.text(16, y + 12, "One lane stores the result, 8 bytes for a row of the warp; merge_parts merges those of the warps and blocks.", "s")
    return figure.svg()


FIGURES = {"reduce_in_registers": reduce_in_registers}
