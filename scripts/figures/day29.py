"""Day 29: which SMs have work, and how the parts of a row become its result."""

from figures.svg import Figure

SMS, HEADS, SPLITS = 132, 32, 16  # an H200; one sequence; splits_for() with 4 blocks per SM
SCORES = [[3, 2], [1, 1], [4, 3], [3, 3]]  # of the keys of four parts; powers of 2 instead of e
VALUES = [[2, 4], [4, 4], [3, 6], [2, 1]]  # one column of V


def part_of(scores, values):
    """(m, l, o) of some keys."""
    largest = max(scores)
    weights = [2.0 ** (score - largest) for score in scores]
    return largest, sum(weights), sum(weight * value for weight, value in zip(weights, values))


def split_keys():
    """Left: SMs with and without a block. Below: one row in four parts."""
    figure = Figure(
        764,
        452,
        "With a block for each row, 32 blocks keep 32 of 132 SMs busy. With 16 blocks for each row, all SMs are busy. "
        "Each block stores the maximum, the sum and the weighted sum of its keys; a second kernel combines them",
    )
    blocks_of = lambda blocks: [len(range(sm, blocks, SMS)) for sm in range(SMS)]
    across, size = 33, 9
    for x, title, blocks in ((16, "row_per_block", HEADS), (384, "split_keys", HEADS * SPLITS)):
        counts = blocks_of(blocks)
        figure.text(x, 22, title, "t")
        for sm, count in enumerate(counts):
            figure.rect(x + sm % across * 10, 34 + sm // across * 10, size, size, "w1" if count else "idle", 1.5)
        busy = sum(count > 0 for count in counts)
        figure.text(x, 94, f"{blocks} blocks: {busy} of {SMS} SMs have work", "s")
        figure.text(x, 112, "a block reads all keys of its row" if blocks == HEADS else f"a block reads 1/{SPLITS} of the keys of a row", "s")

    left, width, gap = 96, 142, 16
    figure.text(16, 150, "One row, here of eight keys in four parts (powers of 2 instead of e)", "t")
    for y, name in ((186, "scores"), (214, "values"), (276, "parts")):
        figure.text(16, y, name)
    parts = [part_of(scores, values) for scores, values in zip(SCORES, VALUES)]
    for part, (largest, total, out) in enumerate(parts):
        x = left + part * (width + gap)
        for key in range(2):
            figure.cell(x + key * width / 2, 170, width / 2 - 3, 24, f"f{part}", SCORES[part][key])
            figure.cell(x + key * width / 2, 198, width / 2 - 3, 24, f"f{part}", VALUES[part][key])
        figure.arrow(x + width / 2, 226, x + width / 2, 255)
        figure.text(x + width / 2 + 8, 244, f"block {part}", "s")
        for at, (letter, value) in enumerate((("m", largest), ("l", total), ("o", out))):
            figure.cell(x + at * width / 3, 258, width / 3 - 3, 28, f"w{part}", f"{letter} {value:g}")
        figure.arrow(x + width / 2, 290, x + width / 2, 331)

    shared = max(largest for largest, _, _ in parts)
    factors = [2.0 ** (largest - shared) for largest, _, _ in parts]
    for part, factor in enumerate(factors):
        figure.text(left + part * (width + gap) + width / 2 + 8, 314, f"l, o times {factor:g}", "s")
    total = sum(factor * part[1] for factor, part in zip(factors, parts))
    out = sum(factor * part[2] for factor, part in zip(factors, parts))
    whole = part_of(sum(SCORES, []), sum(VALUES, []))
    assert (shared, total, out) == whole
    figure.text(16, 355, "combine")
    figure.cell(left, 336, 4 * width + 3 * gap - 3, 30, "cell", f"m {shared:g},  l {total:g},  o {out:g};  result = o / l = {out / total:g}")
    figure.text(16, 396, "m: the largest score.   l: the sum of the weights 2^(score - m).   o: the sum of weight times value.", "s")
    figure.text(16, 418, "Parts do not depend on each other, so no block waits. Each stores m, l and o (one o for each column of V).", "s")
    figure.text(16, 436, "A second kernel, combine_splits, scales l and o by 2^(m - 4), 4 being the largest m, and adds them up.", "s")
    return figure.svg()


FIGURES = {"split_keys": split_keys}
