"""Day 17: partition from both ends of the output."""

from figures.svg import Figure


def partition():
    """Tiles of 4 elements stand for tiles of 4,096."""
    tile, threshold, values = 4, 50, [12, 71, 34, 90, 55, 23, 48, 8, 66, 81, 17, 95]
    n = len(values)
    out, moves, staged_rows, kept_before_tile = [None] * n, [], [], 0
    for first in range(0, n, tile):
        part = values[first : first + tile]
        size, total, staged = len(part), 0, [None] * len(part)
        for i, value in enumerate(part):  # stage_both
            if value < threshold:
                staged[total] = value
                total += 1
            else:
                staged[size - 1 - (i - total)] = value
        staged_rows += staged
        others, others_before = size - total, first - kept_before_tile
        for i, value in enumerate(staged):
            place = kept_before_tile + i if i < total else n - others_before - others + i - total
            out[place] = value
            moves.append((first + i, place, i < total))
        kept_before_tile += total
    kept = [value for value in values if value < threshold]
    assert out == kept + [value for value in reversed(values) if value >= threshold]

    figure = Figure(
        700,
        330,
        "Three tiles of four elements: each stages what it keeps at the front and the others at the end in reverse; "
        "the kept ones go to the front of out in order, the others to its end, in reverse order",
    )
    figure.text(16, 22, f"partition: keep the elements below {threshold}", "t")
    cell, gap, left = 42, 12, 120

    def x_of(i):
        return left + i * cell + i // tile * gap

    def x_of_out(i):
        return left + gap + i * cell

    def kind(value):
        return "w0" if value < threshold else "w2"

    for y, words, row in ((60, "in", values), (120, "staged", staged_rows)):
        figure.text(16, y + 19, words)
        for i, value in enumerate(row):
            figure.cell(x_of(i), y, cell - 4, 28, kind(value), value)
    for t in range(n // tile):
        middle = x_of(tile * t) + 2 * cell - 2
        figure.text(middle, 50, f"tile {t}", "s m")
        figure.arrow(middle, 92, middle, 116)
    for source, place, is_kept in moves:
        figure.arrow(x_of(source) + 19, 150, x_of_out(place) + 19, 226, hot=not is_kept)
    figure.text(16, 249, "out")
    for i, value in enumerate(out):
        figure.cell(x_of_out(i), 230, cell - 4, 28, kind(value), value)
        figure.text(x_of_out(i) + 19, 274, i, "s m")
    figure.text(16, 302, "Kept: at the number kept before. Others: the first of them takes the last place, known from the start;", "s")
    figure.text(16, 320, "before element i there are i - (number kept) of them. So one look-back serves both ends.", "s")
    return figure.svg()


FIGURES = {"partition": partition}
