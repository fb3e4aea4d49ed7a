"""Day 36: push and pull; edges shared among the lanes of a warp."""

from math import hypot

from figures.svg import Figure

PLACES = {0: (30, 112), 1: (122, 40), 2: (122, 112), 3: (122, 184), 4: (214, 58), 5: (214, 132), 6: (214, 204), 7: (300, 76), 8: (300, 186)}
EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 3), (2, 4), (2, 5), (3, 5), (3, 6), (4, 7), (5, 6), (6, 8), (7, 8)]
NEIGHBOURS = {v: sorted(b if a == v else a for a, b in EDGES if v in (a, b)) for v in PLACES}
LEVEL = {0: 0, 1: 1, 2: 1, 3: 1}  # found so far


def push():
    """[(from, to, found)] of the reads of one level."""
    level, reads = dict(LEVEL), []
    for v in [v for v in PLACES if LEVEL.get(v) == 1]:
        for neighbour in NEIGHBOURS[v]:
            reads.append((v, neighbour, neighbour not in level))
            level.setdefault(neighbour, 2)
    return reads


def pull():
    reads = []
    for v in [v for v in PLACES if v not in LEVEL]:
        for neighbour in NEIGHBOURS[v]:
            found = LEVEL.get(neighbour) == 1
            reads.append((v, neighbour, found))
            if found:
                break
    return reads


def push_and_pull():
    figure = Figure(
        720,
        378,
        "The same level twice. Push: the vertices of the frontier read all their edges. "
        "Pull: each vertex without a level reads its edges until one leads to the frontier",
    )
    top = 40
    for left, name, rule, reads in (
        (10, "push (top-down)", "the frontier looks for vertices without a level", push()),
        (382, "pull (bottom-up)", "vertices without a level look for the frontier", pull()),
    ):
        found = sum(hit for _, _, hit in reads)
        figure.text(left + 6, 22, name, "t")
        figure.text(left + 6, 42, rule, "s")
        for a, b in EDGES:
            (x1, y1), (x2, y2) = PLACES[a], PLACES[b]
            figure.line(left + x1, top + y1, left + x2, top + y2, "dash")
        for a, b, hit in sorted(reads, key=lambda read: read[2]):
            (x1, y1), (x2, y2) = PLACES[a], PLACES[b]
            length = hypot(x2 - x1, y2 - y1)
            dx, dy = (x2 - x1) / length, (y2 - y1) / length
            x1, y1, x2, y2 = (left + x1 - 4 * dy, top + y1 + 4 * dx, left + x2 - 4 * dy, top + y2 + 4 * dx)
            figure.arrow(x1 + 16 * dx, y1 + 16 * dy, x2 - 17 * dx, y2 - 17 * dy, hot=hit)
        for v, (x, y) in PLACES.items():
            kind = {0: "w1", 1: "w0"}.get(LEVEL.get(v), "cell")
            figure.circle(left + x, top + y, 15, kind, v)
        figure.text(left + 6, 300, f"{len(reads)} edges are read, {found} vertices are found", "n")
    figure.key(16, 322, [("w1", "level 0"), ("w0", "level 1: the frontier"), ("cell", "no level yet")])
    figure.text(16, 362, "Orange: finds a vertex. Grey: read in vain. In push, two threads may find one vertex at the same time.", "s")
    return figure.svg()


def balanced_edges():
    """The example of the README, 8 lanes instead of 32."""
    lanes, counts = 8, [4, 2, 5]
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    total = ends[-1]
    ends += [total] * (lanes - len(ends))

    def owner_of(item):
        owner, step = 0, lanes // 2
        while step > 0:
            if ends[owner + step - 1] <= item:
                owner += step
            step //= 2
        return owner

    figure = Figure(
        720,
        300,
        "Entries of 4, 2 and 5 edges. With an entry per lane, five steps in which most lanes idle; "
        "with edges shared among all lanes, two steps",
    )
    cell, top = 40, 84
    begins = [end - count for end, count in zip(ends, counts)]
    per_entry = [[begins[l] + k if l < len(counts) and k < counts[l] else None for l in range(lanes)] for k in range(max(counts))]
    shared = [
        [lanes * k + l if lanes * k + l < total else None for l in range(lanes)] for k in range(-(-total // lanes))
    ]
    for left, title, rule, steps in (
        (16, "an entry per lane", "lane l loops over its own edges", per_entry),
        (376, "edges shared: frontier_balanced", "in step k, lane l takes edge 8 k + l", shared),
    ):
        figure.text(left, 22, title, "t")
        figure.text(left, 42, rule, "s")
        for lane in range(lanes):
            figure.text(left + lane * cell + 18, top - 10, f"lane {lane}" if lane == 0 else lane, "s m")
        for k, row in enumerate(steps):
            for lane, edge in enumerate(row):
                kind = "idle" if edge is None else f"w{owner_of(edge)}"
                figure.cell(left + lane * cell, top + k * 32, cell - 4, 28, kind, "" if edge is None else edge)
    sums = " ".join(map(str, ends[: len(counts)]))
    figure.key(376, 176, [(f"w{i}", f"{count} edges") for i, count in enumerate(counts)])
    figure.text(376, 212, f"running sums of the entries: {sums}", "s")
    figure.text(376, 230, "Edge 5: the first sum above 5 is that of lane 1.", "s")
    assert owner_of(5) == 1
    figure.text(16, 272, f"Numbers are edges, grey lanes idle: {len(per_entry)} steps or {len(shared)}. 8 lanes stand for 32.", "s")
    figure.text(16, 290, "A binary search over the running sums finds the entry that an edge belongs to.", "s")
    return figure.svg()


FIGURES = {"push_and_pull": push_and_pull, "balanced_edges": balanced_edges}
