"""Day 38: the ring of stages between producers and consumers."""

from figures.svg import Figure

STAGES = 4
ISSUE, FLIGHT, MULTIPLY = 1, 3, 2  # ticks: issue copies, until they are complete, multiply a tile


def stage_ring():
    """Runs the loops of multiply_beside() in ticks that are not measured."""
    tiles, until = 12, 22
    filled, emptied, events = {}, {}, []
    producer = consumer = 0
    for tile in range(tiles):
        start = max(producer, emptied.get(tile - STAGES, 0))
        producer = start + ISSUE
        filled[tile] = start + FLIGHT
        begin = max(consumer, filled[tile])
        consumer = emptied[tile] = begin + MULTIPLY
        events.append((tile, start, filled[tile], begin, emptied[tile]))

    tick, left, pitch, top = 26, 112, 78, 134
    figure = Figure(
        700,
        544,
        "Four stages over time: a tile is copied into a stage, waits there and is multiplied, then the stage is free for the tile "
        "four later. Each stage has two barriers, filled and emptied, whose phases count up",
    )
    figure.text(16, 22, "multiply_beside: four stages between producers and consumers", "t")
    figure.text(left, 42, "time; the lengths are not measured", "s")

    def bar(start, end, y, height, kind, words=""):
        if start < until:
            figure.cell(left + start * tick, y, (min(end, until) - start) * tick - 2, height, kind, words)

    for y, name in ((54, "producers"), (88, "consumers")):
        figure.text(16, y + 18, name)
        figure.rect(left, y, until * tick - 2, 26, "idle")
    for tile, start, arrival, begin, end in events:
        bar(start, start + ISSUE, 54, 26, "w2", tile)
        bar(begin, end, 88, 26, "w0", tile)
    for stage in range(STAGES):
        y = top + stage * pitch
        figure.text(16, y + 18, f"stage {stage}")
        figure.text(16, y + 40, "filled", "s")
        figure.text(16, y + 58, "emptied", "s")
        phases, free = {31: [0], 49: [0]}, 0
        for tile, start, arrival, begin, end in events[stage::STAGES]:
            if free < start:
                bar(free, start, y, 26, "idle")
            bar(start, arrival, y, 26, "f2", f"copy {tile}")
            bar(arrival, begin, y, 26, "f1", tile if begin - arrival > 0 else "")
            bar(begin, end, y, 26, "w0", tile)
            phases[31].append(arrival)
            phases[49].append(end)
            free = end
        if free < until:
            bar(free, until, y, 26, "idle")
        for dy, ends in phases.items():
            for phase, (start, end) in enumerate(zip(ends, ends[1:] + [until])):
                bar(start, end, y + dy - 3, 16, "cell" if phase % 2 == 0 else "f3")
                if start < until:
                    middle = left + (start + min(end, until)) / 2 * tick
                    figure.text(middle, y + dy + 9, f"phase {phase}" if min(end, until) - start > 2 else phase, "p m")
    y = top + STAGES * pitch + 10
    figure.key(16, y, [("w2", "issue copies"), ("f2", "in flight"), ("f1", "filled, waits"), ("w0", "multiply"), ("idle", "free, or wait")])
    for line, words in enumerate(
        (
            "Phase r of filled ends when tile 4 r + stage is complete; consumers wait for that (parity r % 2).",
            "Phase r of emptied ends when all consumers have multiplied it; producers wait for that, then copy",
            "tile 4 (r + 1) + stage into it. No barrier for all threads is needed.",
        )
    ):
        figure.text(16, y + 36 + 18 * line, words, "s")
    return figure.svg()


FIGURES = {"stage_ring": stage_ring}
