"""Day 19: the network of bitonic_sort for eight keys; how votes find the lanes with an equal digit."""

from figures.svg import Figure


def bitonic():
    """bitonic_sort for 8 keys; a tile of the lesson has 2,048."""
    keys = [6, 4, 7, 1, 3, 8, 2, 5]
    size = len(keys)
    pitch, left, top = 30, 40, 88
    figure = Figure(
        696,
        392,
        "A bitonic network for eight keys: six phases of four comparisons; an arrow points to where the larger key goes. "
        "After three phases the keys go up and then down, after three more they are sorted",
    )
    figure.text(16, 22, "bitonic_sort for 8 keys: 1 + 2 + 3 phases", "t")
    x, drawn = left, []
    length = 2

    def values(x):
        for i, key in enumerate(keys):
            drawn.append((x, top + i * pitch, key))

    values(x)
    start = x
    while length <= size:
        begin, stride = x, length // 2
        while stride > 0:
            pairs = []
            for thread in range(size // 2):
                i = 2 * thread - thread % stride
                pairs.append((i, i + stride, i & length == 0))
            width = 52 + 26 * stride
            figure.text(x + width / 2, 68, f"stride {stride}", "s m")
            for i, j, upwards in pairs:
                at = x + 38 + i % stride * 26
                smaller, larger = (i, j) if upwards else (j, i)
                swapped = keys[smaller] > keys[larger]
                sign = 1 if larger > smaller else -1
                figure.arrow(at, top + smaller * pitch + sign * 2, at, top + larger * pitch - sign * 1, hot=swapped)
                figure.circle(at, top + smaller * pitch, 2.5, "hothead" if swapped else "head")
                if swapped:
                    keys[smaller], keys[larger] = keys[larger], keys[smaller]
            x += width
            values(x)
            stride //= 2
        figure.text((begin + x) / 2, 48, f"length {length}", "n m")
        figure.rect(begin + 15, 53, x - begin - 30, 1.5, "head", 0)
        length *= 2
    assert keys == sorted(keys)
    wires = [f'<path d="M{start:g},{top + i * pitch:g}H{x:g}" class="dash" style="opacity: .5"/>' for i in range(size)]
    figure.parts[2:2] = wires
    for x, y, key in drawn:
        figure.cell(x - 11, y - 11, 22, 22, "cell", key)
    figure.text(16, 338, "An arrow compares two keys, and its head gets the larger one. Orange: they were swapped.", "s")
    figure.text(16, 356, "Before the strides of length 8, the keys go up and then down. After stride 4, no key of the upper half", "s")
    figure.text(16, 374, "is larger than one of the lower half. Which pairs are compared does not depend on the keys.", "s")
    return figure.svg()


def match():
    """Ranking eight keys with digits of three bits; in the lesson 32 keys with digits of eight."""
    digits, bits, me = [5, 2, 5, 3, 1, 5, 2, 4], 3, 5
    lanes = len(digits)
    next_place = {1: 40, 2: 52, 3: 60, 4: 71, 5: 84}
    equal = [set(range(lanes))] * lanes
    figure = Figure(
        736,
        366,
        "Eight lanes vote on each bit of their digits; lane 5 keeps the lanes that voted as it did, first all, "
        "at the end lanes 0, 2 and 5, which have the same digit, and takes the place after the two before it",
    )
    figure.text(16, 22, "The place of each key: a vote for each bit of the digit", "t")
    left, cell, y = 210, 44, 72
    for lane in range(lanes):
        figure.text(left + lane * cell + 20, 46, f"lane {lane}" if lane == 0 else lane, "s m")
    figure.text(16, y - 1, "digit, in bits", "n")
    for lane, digit in enumerate(digits):
        figure.cell(left + lane * cell, y - 18, 40, 26, "w0" if lane == me else "cell", f"{digit:03b}")
    for bit in range(bits):
        votes = [digit >> bit & 1 for digit in digits]
        equal = [equal[l] & {o for o in range(lanes) if votes[o] == votes[l]} for l in range(lanes)]
        y += 50
        figure.text(16, y - 7, f"votes on bit {bit}", "n")
        figure.text(16, y + 9, f"lane {me} voted {votes[me]}", "s")
        for lane in range(lanes):
            alive = lane in equal[me]
            figure.cell(left + lane * cell, y - 16, 40, 28, ("w0" if lane == me else "f0") if alive else "idle", votes[lane])
        figure.text(left + lanes * cell + 10, y + 4, "equal so far: " + " ".join(map(str, sorted(equal[me]))), "s")
    assert equal == [{o for o in range(lanes) if digits[o] == digits[l]} for l in range(lanes)]
    y += 56
    figure.text(16, y - 7, "place", "n")
    figure.text(16, y + 9, "counter + equal lanes before", "s")
    for lane, digit in enumerate(digits):
        before = sum(other < lane for other in equal[lane])
        same = digit == digits[me]
        kind = "w0" if lane == me else "f0" if same else "cell"
        figure.cell(left + lane * cell, y - 16, 40, 28, kind, f"{next_place[digit]}+{before}")
    figure.text(left + lanes * cell + 10, y + 4, f"last of them: {next_place[digits[me]] + len(equal[me])}", "s") if False else None
    y += 44
    last = max(equal[me])
    assert last == me
    first = next_place[digits[me]]
    for line in (
        f"The warp's counter of digit {digits[me]:03b} is {first}: where its next key with this digit goes. Lanes 0, 2 and 5 take",
        f"places {first}, {first + 1} and {first + 2}, in the order of lanes. Lane {last}, the last of them, sets the counter to {first + len(equal[me])}.",
        "8 lanes and 3 bits stand for 32 and 8. match_bytes votes like this; __match_any_sync returns the same.",
    ):
        figure.text(16, y, line, "s")
        y += 18
    return figure.svg()


FIGURES = {"bitonic": bitonic, "match": match}
