"""Day 39: a quadtree, and the grids that build it."""

from figures.svg import Figure

POINTS = [(0.06, 0.1), (0.13, 0.2), (0.2, 0.07), (0.18, 0.33), (0.33, 0.18), (0.4, 0.41), (0.07, 0.44), (0.3, 0.06),
          (0.62, 0.2), (0.9, 0.4), (0.2, 0.8), (0.58, 0.6), (0.64, 0.7), (0.72, 0.55), (0.9, 0.85), (0.6, 0.9)]
CAPACITY, DEEPEST = 2, 3


def build(points, depth=0, x=0, y=0):
    """(depth, x, y, points, quadrants), where a leaf has no quadrants; quadrants in the order of the lesson."""
    if len(points) <= CAPACITY or depth == DEEPEST:
        return depth, x, y, points, []
    side = 0.5**depth
    centre = ((x + 0.5) * side, (y + 0.5) * side)
    quarters = [[], [], [], []]
    for p in points:
        quarters[(p[0] >= centre[0]) + 2 * (p[1] >= centre[1])].append(p)
    return depth, x, y, points, [build(part, depth + 1, 2 * x + q % 2, 2 * y + q // 2) for q, part in enumerate(quarters)]


def grids():
    tree = build(POINTS)
    launched = []  # (depth of its nodes, nodes, index of the parent grid, block that launches it)

    def launch(nodes, parent, block):
        place = len(launched)
        launched.append((nodes[0][0], nodes, parent, block))
        for b, node in enumerate(nodes):
            if any(len(q[3]) > CAPACITY and q[0] < DEEPEST for q in node[4]):
                launch(node[4], place, b)

    launch([tree], None, 0)
    figure = Figure(
        720,
        310,
        "Left: 16 points in a square; squares with more than 2 points are split. Right: the grid of the root, one block, "
        "launches a grid of four blocks; a block that has split a node launches the next grid",
    )
    figure.text(16, 22, f"squares with more than {CAPACITY} points are split", "t")
    left, top, size = 16, 38, 250

    def square(node):
        depth, x, y, points, quarters = node
        side = size * 0.5**depth
        if not quarters:
            figure.rect(left + x * side, top + size - (y + 1) * side, side, side, "f0" if depth % 2 else "cell", 0)
        for quarter in quarters:
            square(quarter)

    square(tree)
    for x, y in POINTS:
        figure.circle(left + x * size, top + size - y * size, 3.5, "w2")
    figure.text(310, 22, "a grid of four blocks for each node whose quadrants are split again", "t")
    cell, places = 30, {}
    for place, (depth, nodes, parent, block) in enumerate(launched):
        same = [p for p, grid in enumerate(launched) if grid[0] == depth]
        x = 320 + (0 if parent is None else 60) + 170 * same.index(place)
        y = 50 + 80 * depth
        places[place] = (x, y)
        for b, node in enumerate(nodes):
            figure.cell(x + b * (cell + 4), y, cell, 28, "w0" if node[4] else "idle", len(node[3]))
        if parent is not None:
            px, py = places[parent]
            figure.arrow(px + block * (cell + 4) + cell / 2, py + 30, x + 2 * (cell + 4), y - 4, hot=True)
    figure.key(320, 262, [("w0", "a block that splits its node"), ("idle", "a leaf")])
    figure.text(320, 300, "numbers are points; arrows are launches", "s")
    return figure.svg()


FIGURES = {"grids": grids}
