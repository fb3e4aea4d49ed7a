"""Day 14: which points a thread has, and the bins that a block visits."""

from figures.svg import Figure

LANES, POINTS = 32, 4


def points_of_a_lane():
    """The first 32 points of a row, and which lane of the warp has them, in two versions."""
    figure = Figure(
        720,
        250,
        "32 adjacent points of a row: coarsened gives four adjacent points to each lane, so a store reaches every "
        "fourth point; coalesced gives one point to each of 32 lanes, so a store reaches adjacent points",
    )
    left, width = 16, 21.5
    for top, title, lane_of, k_of in (
        (60, "coarsened: lane l has points 4 l to 4 l + 3", lambda x: x // POINTS, lambda x: x % POINTS),
        (170, "coalesced: lane l has points l, l + 32, l + 64, l + 96", lambda x: x % LANES, lambda x: x // LANES),
    ):
        stored = [x for x in range(LANES * POINTS) if k_of(x) == 0]
        sectors = len({x // 8 for x in stored})
        figure.text(left, top - 38, title, "t")
        figure.text(704, top - 38, f"{sectors} sectors for a store", "t e")
        for x in range(LANES):
            kind = "w0" if k_of(x) == 0 else "f0"
            figure.cell(left + x * width, top - 22, width - 2, 26, kind)
            figure.parts.append(
                f'<text x="{left + x * width + width / 2 - 1:g}" y="{top - 5:g}" '
                f'class="{"on" if kind[0] == "w" else "m"}" style="font-size: 10.5px">{lane_of(x)}</text>'
            )
        for sector in range(LANES // 8):
            figure.rect(left + sector * 8 * width - 2, top - 24, 8 * width + 1, 30, "ring", 2)
    figure.text(left, 90, "The first 32 points of a row. A number is a lane. Dark: the first store of the warp. Frame: a sector.", "s")
    figure.text(left, 108, "The store reaches 8 points of this part of the row, and as many of the next three.", "s")
    figure.text(left, 200, "All 32 points of the store are here. The next store reaches the next 32 points.", "s")
    return figure.svg()


def bins():
    """The bins that a block visits, in a plane, with a cutoff of three bins."""
    figure = Figure(
        720,
        330,
        "A grid of bins; a block of points in the middle; the bins that the cutoff reaches from the block form a square, "
        "which the rounded region of atoms that count fills only in part",
    )
    size, cells, left, top = 26, 11, 16, 30
    block = (4.3, 4.6, 1.3, 0.9)  # x, y, width, height, in bins
    reach = 3
    low_x, high_x = int(block[0] - reach), int(block[0] + block[2] + reach)
    low_y, high_y = int(block[1] - reach), int(block[1] + block[3] + reach)
    seed, places = 14, []
    for _ in range(170):
        seed = (seed * 1664525 + 1013904223) % 2**32
        x = (seed >> 8) % 1000 / 1000 * cells
        seed = (seed * 1664525 + 1013904223) % 2**32
        places.append((x, (seed >> 8) % 1000 / 1000 * cells))
    visited = counted = 0
    for y in range(cells):
        for x in range(cells):
            inside = low_x <= x <= high_x and low_y <= y <= high_y
            figure.rect(left + x * size, top + y * size, size - 1, size - 1, "f0" if inside else "cell", 0)
    for x, y in places:
        dx = max(block[0] - x, 0, x - block[0] - block[2])
        dy = max(block[1] - y, 0, y - block[1] - block[3])
        read = low_x <= int(x) <= high_x and low_y <= int(y) <= high_y
        near = dx * dx + dy * dy < reach * reach
        visited += read
        counted += near
        figure.circle(left + x * size, top + y * size, 3, "w2" if near else "w0" if read else "idle")
    figure.rect(
        left + (block[0] - reach) * size,
        top + (block[1] - reach) * size,
        (block[2] + 2 * reach) * size,
        (block[3] + 2 * reach) * size,
        "dash",
        reach * size,
    )
    figure.rect(left + block[0] * size, top + block[1] * size, block[2] * size, block[3] * size, "ring", 2)
    right = 340
    figure.text(right, 46, "binned: a block visits the bins that it can reach", "t")
    figure.key(right, 66, [("f0", "visited bins")])
    for line, (kind, words) in enumerate(
        (
            ("w2", f"{counted} atoms within the cutoff of some point"),
            ("w0", f"{visited - counted} atoms that are read in vain"),
            ("idle", f"{len(places) - visited} atoms that are not read"),
        )
    ):
        figure.circle(right + 7, 104 + 24 * line, 4, kind)
        figure.text(right + 20, 108 + 24 * line, words, "s")
    figure.text(right, 190, "Frame: the points of the block.", "s")
    figure.text(right, 208, "Dashed: the cutoff around them, three bins.", "s")
    return figure.svg()


FIGURES = {"points_of_a_lane": points_of_a_lane, "bins": bins}
