"""Day 16: the three kernels of a scan by sections; striped and blocked packs of a tile."""

from figures.svg import Figure


def scan(values):
    sums = []
    for value in values:
        sums.append((sums[-1] if sums else 0) + value)
    return sums


def three_kernels():
    """Sections of 4 elements stand for sections of 256."""
    section, values = 4, [2, 1, 0, 3, 1, 4, 1, 2, 3, 0, 2, 1]
    sections = [values[i : i + section] for i in range(0, len(values), section)]
    scanned = [scan(part) for part in sections]
    sums = [part[-1] for part in scanned]
    before = scan(sums)
    out = [value + (before[b - 1] if b > 0 else 0) for b, part in enumerate(scanned) for value in part]
    assert out == scan(values)

    figure = Figure(
        700,
        400,
        "Data flow of a scan by sections: each block scans its section and writes its sum, "
        "the sums are scanned, and the sum of all sections before is added to each element",
    )
    figure.text(16, 22, "A scan by sections: three kernels", "t")
    cell, gap, left = 38, 16, 152

    def x_of(i):
        return left + i * cell + i // section * gap

    def row(y, numbers, kind):
        for i, number in enumerate(numbers):
            figure.cell(x_of(i), y, cell - 4, 28, f"{kind}{i // section}", number)

    def last(b):
        return x_of(section * b + section - 1) + (cell - 4) / 2

    figure.text(16, 64, "in")
    row(46, values, "f")
    figure.text(16, 102, "kogge_stone", "n")
    figure.text(16, 118, "a block per section", "s")
    for b in range(3):
        middle = (x_of(section * b) + x_of(section * b + section - 1) + cell - 4) / 2
        figure.arrow(middle, 76, middle, 94)
    row(98, sum(scanned, []), "w")
    for b in range(3):
        figure.arrow(last(b), 128, last(b), 152)
        figure.cell(last(b) - 17, 156, 34, 28, f"w{b}", sums[b])
    figure.text(16, 174, "sums")
    figure.text(16, 228, "a scan again", "n")
    figure.text(16, 244, "of the sums", "s")
    for b in range(3):
        figure.arrow(last(b), 186, last(b), 212)
        if b > 0:
            figure.arrow(last(b - 1) + 18, 230, last(b) - 19, 230)
    for b in range(3):
        figure.cell(last(b) - 17, 216, 34, 28, "cell", before[b])
    figure.text(16, 312, "add_sums", "n")
    for b in range(1, 3):
        x = (x_of(section * b) + x_of(section * b + section - 1) + cell - 4) / 2
        figure.arrow(last(b - 1) + 4, 246, x, 292, hot=True)
        figure.text(x + 8, 282, f"+ {before[b - 1]}", "n")
    row(296, out, "w")
    figure.text(16, 330, "out", "s")
    figure.text(16, 366, "An element gets the sum of all sections before its own. The first section is final after", "s")
    figure.text(16, 384, "the first kernel. Sections of 4 elements stand for 256.", "s")
    return figure.svg()


PACKS = 5  # kPacks, 16-byte packs of a thread
THREADS = 8  # they stand for the 256 of a block; eight access 128 bytes at once


def arrangements():
    cell, top = 38, 92
    figure = Figure(
        712,
        356,
        "Packs of a tile, eight in a row: striped, the first access of eight threads takes the first eight packs; "
        "blocked, it takes packs 0, 5, 10 to 35, each in a different column, which stands for a group of banks",
    )
    for left, title, rule, place in (
        (16, "striped: global memory", "access p: thread t takes pack 8 p + t", lambda t, p: p * THREADS + t),
        (374, "blocked: for the scan", "access p: thread t takes pack 5 t + p", lambda t, p: t * PACKS + p),
    ):
        figure.text(left, 22, title, "t")
        figure.text(left, 44, rule, "s")
        columns = set()
        for t in range(THREADS):
            for p in range(PACKS):
                row, column = divmod(place(t, p), THREADS)
                if p == 0:
                    columns.add(column)
                figure.cell(
                    left + column * cell, top + row * cell, cell - 3, cell - 3, ("w" if p == 0 else "f") + str(t % 4), t
                )
        assert len(columns) == THREADS  # no bank conflicts
        for group in range(THREADS):
            figure.text(left + group * cell + 17, 80, group, "s m")
    figure.text(16, 308, "A cell is a pack of 16 bytes in shared memory, with the number of its thread; a column is a group of", "s")
    figure.text(16, 326, "four banks. Strong colours: the first access of eight threads. Both times it takes every group once,", "s")
    figure.text(16, 344, "so there are no bank conflicts. (In the lesson, 256 threads: access p of striped takes pack 256 p + t.)", "s")
    return figure.svg()


FIGURES = {"three_kernels": three_kernels, "arrangements": arrangements}
