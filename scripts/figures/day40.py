"""Day 40: which lane supplies which address to ldmatrix, and which lane gets which elements."""

from figures.svg import Figure


def ldmatrix():
    """A fragment of A, 16 x 16 elements of 16 bits, as in mma_sync()."""
    me = 6
    figure = Figure(
        756,
        498,
        f"Left: each lane passes the address of one row of eight elements; lane {me} that of row {me} of matrix 0. "
        f"Right: each lane gets two adjacent elements of each of the four matrices; lane {me} elements 4 and 5 of their rows 1",
    )
    row_height, top = 21, 82

    # Lane l passes the address of row l % 16, half l / 16.
    left, width = 52, 104
    figure.text(16, 22, "each lane passes an address", "t")
    figure.text(16, 42, "row lane % 16, half lane / 16", "s")
    for half in range(2):
        figure.text(left + half * width + width / 2, 72, ("k 0-7", "k 8-15")[half], "s m")
    for row in range(16):
        figure.text(left - 8, top + row * row_height + 14, row, "s e")
    supplied = {}
    for lane in range(32):
        row, half = lane % 16, lane // 16
        matrix = lane // 8
        supplied[row // 8, half] = matrix
        figure.cell(
            left + half * width, top + row * row_height, width - 3, row_height - 3, ("w" if lane == me else "f") + str(matrix), f"lane {lane}"
        )

    # Register r of lane 4 g + t holds elements 2 t and 2 t + 1 of row g of matrix r.
    left, width = 324, 50
    figure.text(left - 28, 22, "each lane gets four pairs of elements", "t")
    figure.text(left - 28, 42, "register r of lane 4 g + t: row g, elements 2 t and 2 t + 1 of matrix r", "s")
    for pair in range(8):
        figure.text(left + pair * width + 23, 72, f"{2 * pair}, {2 * pair + 1}", "s m")
    for row in range(16):
        figure.text(left - 8, top + row * row_height + 14, row, "s e")
    for (below, half), matrix in supplied.items():
        for lane in range(32):
            g, t = divmod(lane, 4)
            figure.cell(
                left + (half * 4 + t) * width,
                top + (below * 8 + g) * row_height,
                width - 3,
                row_height - 3,
                ("w" if lane == me else "f") + str(matrix),
                lane,
            )
    y = top + 16 * row_height + 14
    figure.key(16, y, [(f"w{matrix}", f"matrix {matrix}, register {matrix}") for matrix in range(4)])
    for line, words in enumerate(
        (
            f"A fragment of A, 16 rows x 16 of K. Strong colours: lane {me}. It passes the address of row {me}, and gets elements of",
            f"rows {me // 4} and {me // 4 + 8}, whose addresses other lanes passed. With .trans, lane 4 g + t gets them from column g.",
        )
    ):
        figure.text(16, y + 36 + 18 * line, words, "s")
    return figure.svg()


FIGURES = {"ldmatrix": ldmatrix}
