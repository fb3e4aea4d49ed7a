"""Day 12: bank conflicts of random bins."""

from figures.svg import Figure

LANES = BANKS = 32


def random_bytes(seed):
    """32 bytes from a linear congruential generator, so that the figure is the same on every machine."""
    values = []
    for _ in range(LANES):
        seed = (seed * 1664525 + 1013904223) % 2**32
        values.append(seed >> 24)
    return values


def bank_conflicts():
    values = random_bytes(1)
    figure = Figure(
        720,
        330,
        "32 lanes add to counters of random values: some banks have to serve three counters, others none; "
        "with a copy of the counters per lane each bank serves one",
    )
    left, width, height = 16, 21.5, 22
    for base, title, bank in (
        (158, "per_warp_copies: counter of value v is in bank v % 32", lambda lane: values[lane] % BANKS),
        (290, "lane_copies: the copy of lane l is in bank l", lambda lane: lane),
    ):
        counters = [[] for _ in range(BANKS)]
        for lane, value in enumerate(values):
            counter = value if base < 200 else (value, lane)
            if counter not in counters[bank(lane)]:  # equal addresses are one access
                counters[bank(lane)].append(counter)
        most = max(map(len, counters))
        figure.text(left, 22 if base < 200 else 236, title, "t")
        figure.text(704, 22 if base < 200 else 236, f"{most} cycle{'s' if most > 1 else ''}", "t e")
        for b in range(BANKS):
            x = left + b * width
            for level, counter in enumerate(counters[b]):
                value = counter if base < 200 else counter[0]
                kind = "w2" if len(counters[b]) == most > 1 else "w0" if level == 0 else "f0"
                figure.rect(x, base - 16 - (level + 1) * height, width - 2, height - 2, kind)
                figure.parts.append(
                    f'<text x="{x + width / 2 - 1:g}" y="{base - 16 - level * height - 8:g}" '
                    f'class="{"on" if kind[0] == "w" else "m"}" style="font-size: 10.5px">{value}</text>'
                )
            figure.line(x, base - 16, x + width - 2, base - 16)
            if b % 4 == 0 or b == BANKS - 1:
                figure.text(x + width / 2 - 1, base, b, "s m")
    distinct = len(set(values))
    figure.text(left, 182, f"A warp counts 32 random bytes, {distinct} of them different. A cell is a counter; the numbers below are banks.", "s")
    figure.text(left, 200, "A bank serves one counter per cycle, so the fullest bank sets the time.", "s")
    figure.text(left, 318, "The same bytes. Whatever they are, no two lanes share a bank.", "s")
    return figure.svg()


FIGURES = {"bank_conflicts": bank_conflicts}
