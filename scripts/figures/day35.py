"""Day 35: one small matrix in every format, as memory holds it."""

from figures.svg import Figure

# (row, column, name) of each entry, sorted: the matrix of the README. Row 2 has column 1 twice; row 1 is empty.
ENTRIES = [(0, 0, "a"), (0, 2, "b"), (0, 5, "c"), (2, 1, "d"), (2, 1, "e"), (2, 3, "f"), (2, 4, "g"), (3, 5, "h")]
ROWS, COLS = 4, 6
PADDING = None


def rows_of_matrix():
    return [[entry for entry in ENTRIES if entry[0] == row] for row in range(ROWS)]


def ell(rows, width):
    """Entry k of row r is at k * rows + r."""
    return [row[k] if k < len(row) else PADDING for k in range(width) for row in rows]


def formats():
    """(name, note, places, places that adjacent threads read first)"""
    rows = rows_of_matrix()
    starts = [sum(map(len, rows[:r])) for r in range(ROWS)]
    longest = max(map(len, rows))
    yield "COO", "and a row for each", ENTRIES, range(len(ENTRIES))
    yield "CSR", "start " + " ".join(map(str, starts + [len(ENTRIES)])), ENTRIES, [starts[r] for r in range(ROWS) if rows[r]]
    yield "ELL", "column by column", ell(rows, longest), range(ROWS)
    width = 2
    rest = [entry for row in rows for entry in row[width:]]
    yield "hybrid", f"ELL, width {width} | COO", ell(rows, width) + ["|"] + rest, range(ROWS)
    order = sorted(range(ROWS), key=lambda r: -len(rows[r]))
    jagged = [rows[r][k] for k in range(longest) for r in order if k < len(rows[r])]
    yield "JDS", "row order " + " ".join(map(str, order)), jagged, range(sum(map(bool, rows)))
    sell = []
    for first in range(0, ROWS, 2):
        piece = rows[first : first + 2]
        sell += ell(piece, max(map(len, piece))) + ["|"]
    first_of_slice = [0, 1, sell.index("|") + 1, sell.index("|") + 2]
    yield "SELL", "slices of two rows", sell[:-1], first_of_slice


def all_formats():
    figure = Figure(
        700,
        572,
        "The matrix of the text and the order in which COO, CSR, ELL, hybrid, JDS and SELL store its eight entries; "
        "outlined are the places that adjacent threads read first: adjacent ones, except in CSR",
    )
    figure.text(16, 22, "One matrix in memory", "t")
    kinds = ["w0", "w3", "w1", "w2"]  # of rows
    cell, left, top = 32, 152, 40
    for row in range(ROWS):
        figure.text(left - 8, top + row * cell + 17, f"row {row}", "s e")
        for col in range(COLS):
            here = [name for r, c, name in ENTRIES if (r, c) == (row, col)]
            figure.cell(left + col * cell, top + row * cell, cell - 2, cell - 2, kinds[row] if here else "cell", "+".join(here))
    for col in range(COLS):
        figure.text(left + col * cell + 12, top + ROWS * cell + 12, col, "s m")
    x = left + COLS * cell + 28
    for line, words in enumerate(
        ("Small numbers: the column stored with an entry.", "Grey: padding, with column -1.", "Outlined: what adjacent threads read first.")
    ):
        figure.text(x, top + 24 + 22 * line, words, "s")
    pitch, y = 33, top + ROWS * cell + 42
    for name, note, places, first in formats():
        figure.text(16, y + 18, name)
        figure.text(16, y + 35, note, "s")
        x = left
        for number, place in enumerate(places):
            if place == "|":
                x += 14
                continue
            figure.cell(x, y, pitch - 4, 24, kinds[place[0]] if place else "idle", place[2] if place else "*")
            figure.text(x + 14.5, y + 39, place[1] if place else -1, "s m")
            if number in first:
                figure.rect(x - 2, y - 2, pitch, 28, "ring", 4)
            x += pitch
        y += 62
    return figure.svg()


FIGURES = {"formats": all_formats}
