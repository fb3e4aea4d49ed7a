"""Day 44: which weights a lane holds after the first product, and which it needs for the second."""

from figures.svg import Figure

LANES, KEYS = 4, 32  # the lanes 4 g + t of one row g of scores; the keys of one 8-bit wgmma


def lane_as_sums(key):
    """Lane t that holds the score of a key as a sum."""
    return key % 8 // 2


def lane_as_operand(place):
    """Lane t that holds a place of the left operand, four bytes of a register."""
    return place % 16 // 4


def key_at(place):
    """The key that transpose_values writes to a place of V^T."""
    return place // 16 * 16 + place % 16 // 4 * 2 + (0, 1, 8, 9)[place % 4]


def renamed_keys():
    """Rows of 32 cells: who holds a key, who needs a place, and which key that place gets."""
    assert sorted(map(key_at, range(KEYS))) == list(range(KEYS))
    assert all(lane_as_sums(key_at(place)) == lane_as_operand(place) for place in range(KEYS))
    figure = Figure(
        772,
        392,
        "32 weights of a row. As sums, lane t holds keys 2t, 2t + 1, 8 + 2t and so on; as left operand it needs places 4t to 4t + 3. "
        "transpose_values puts the keys of V into the places where the lanes hold their weights",
    )
    left, width, height = 92, 20.4, 26
    x_of = lambda place: left + place * width

    figure.text(16, 22, "After Q K^T: which lane holds the weight of which key", "t")
    figure.text(16, 57, "weights")
    figure.text(16, 193, "places")
    for key in range(KEYS):
        figure.cell(x_of(key), 40, width - 2, height, f"w{lane_as_sums(key)}", key)
    figure.text(16, 88, "As left operand of p V, lane t supplies four adjacent places, 4 t to 4 t + 3: not the keys whose weights it holds.", "s")

    figure.text(16, 130, "For p V: a weight stays in its lane, and its key gets another place in the sum", "t")
    figure.text(16, 150, "The numbers are keys; above them, the places.", "s")
    for place in range(KEYS):
        figure.cell(x_of(place), 176, width - 2, height, f"w{lane_as_operand(place)}", key_at(place))
        if place % 4 == 0:
            figure.text(x_of(place) + 2 * width - 1, 170, f"{place}-{place + 3}", "p m")
    figure.text(16, 224, "The columns of V must have their keys in the same places, and transpose_values writes them so:", "s")

    for row, name in enumerate(f"column {c}" for c in range(3)):
        y = 240 + row * 25
        figure.text(16, y + 17, name)
        for place in range(KEYS):
            figure.cell(x_of(place), y, width - 2, 22, f"f{lane_as_operand(place)}", key_at(place))
    figure.text(16, 336, "A sum has the same value in any order of its keys, if the order is the same in p and in V.", "s")
    figure.key(16, 360, [(f"w{t}", f"lane 4 g + {t}") for t in range(LANES)])
    return figure.svg()


FIGURES = {"renamed_keys": renamed_keys}
