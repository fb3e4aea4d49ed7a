"""Day 48: which elements of a row become candidates, and when the threshold is lowered."""

import random

from figures.svg import Figure


def candidates():
    """A row as select_best sees it, with small numbers: k = 4, a list of 12, one element at a time."""
    best, room, columns = 4, 12, 120
    generator = random.Random(48)
    row = [generator.random() for _ in range(columns)]
    width, left, top, height = 756, 62, 56, 210
    step = (width - left - 24) / columns
    figure = Figure(
        width,
        height + 150,
        f"{columns} elements of a row from left to right; the lower, the better. Those below the threshold become candidates. "
        f"Each time {room} keys are in the list, the threshold falls to the {best}th best of them",
    )
    found = sorted(range(columns), key=lambda i: row[i])[:best]
    listed, bound, chosen, steps = [], 1.0, [], [(0, 1.0)]
    for i, value in enumerate(row):
        if value >= bound:
            continue
        chosen.append(i)
        listed.append(value)
        if len(listed) == room:
            listed = sorted(listed)[:best]
            bound = listed[-1]
            steps.append((i + 1, bound))
    figure.text(16, 22, f"a row of {columns}, the {best} smallest are wanted", "t")
    figure.text(16, 41, f"{len(chosen)} become candidates; when {room} keys are in the list, the threshold is lowered and {best} stay", "s")

    def x_of(column):
        return left + column * step

    def y_of(value):
        return top + 12 + (1 - value) * height

    figure.rect(left - 6, top, width - left - 12, height + 22, "cell")
    figure.text(left - 12, y_of(1) + 8, "value", "s e")
    figure.text(left - 12, y_of(0) + 4, "0", "s e")
    for i, value in enumerate(row):
        kind = "w0" if i in found else "w2" if i in chosen else "idle"
        figure.circle(x_of(i) + step / 2, y_of(value), 4, kind)
    ends = [column for column, _ in steps[1:]] + [columns]
    for (begin, level), end in zip(steps, ends):
        figure.line(x_of(begin), y_of(level), x_of(end), y_of(level), "ring")
        if end != columns:
            following = steps[[column for column, _ in steps].index(end)][1]
            figure.line(x_of(end), y_of(level), x_of(end), y_of(following), "ring")
    y = top + height + 40
    figure.key(16, y, [("w0", "one of the 4 best"), ("w2", "another candidate"), ("idle", "dropped by one comparison")])
    figure.text(16, y + 40, "The line is the threshold. Until the list is full for the first time, all elements are below it.", "s")
    return figure.svg()


FIGURES = {"candidates": candidates}
