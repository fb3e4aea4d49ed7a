"""Day 11: the halo of a tile, the march along z with registers, the ring of planes."""

from figures.svg import Figure

TILE = 8  # kTile
INNER = TILE - 2  # kInnerTile


def tile_halo():
    """Two adjacent blocks of shared_tile, one plane of their tiles."""
    cell = 26
    figure = Figure(
        720,
        330,
        "Two adjacent tiles of 8 by 8 cells, of which each block computes the inner 6 by 6; "
        "two columns of cells are loaded by both blocks. At the right, a tile of 32 by 32 cells, whose halo is a thin edge",
    )
    figure.text(16, 22, "shared_tile: one plane of two blocks' tiles", "t")
    left, top = 16, 60
    loads, owner = {}, {}
    for block in range(2):
        for ty in range(TILE):
            for tx in range(TILE):
                x, y = block * INNER + tx - 1, ty - 1
                loads.setdefault((x, y), []).append(block)
                if 0 < tx < TILE - 1 and 0 < ty < TILE - 1:
                    owner[x, y] = block
    for (x, y), blocks in loads.items():
        kind = f"w{owner[x, y]}" if (x, y) in owner else "idle"
        figure.cell(left + (x + 1) * cell, top + (y + 1) * cell, cell - 2, cell - 2, kind, "2" if len(blocks) > 1 else "")
    for block in range(2):
        x = left + block * INNER * cell - 2
        figure.text(x + TILE * cell / 2 + (12 if block else -12), top - 10, f"block {block} loads 8 x 8", "s m")
        figure.rect(x, top - 2 + 4 * block, TILE * cell + 2, TILE * cell + 2 - 8 * block, "ring", 2)
    figure.text(16, top + 236, "Colour: computed. Frame: loaded. Between the two: halo.", "s")
    figure.text(16, top + 254, "2: loaded by both blocks. The edge of one is halo of the other.", "s")

    left, width = 440, 208
    figure.text(left, 22, "coarsened_z: a plane's tile", "t")
    figure.rect(left, top - 2, width, width, "idle", 0)
    figure.rect(left + width / 32, top - 2 + width / 32, width * 30 / 32, width * 30 / 32, "w0", 0)
    figure.text(left + width / 2, top + 94, "30 x 30 computed", "on")
    figure.text(left + width / 2, top + 114, "of 32 x 32 loaded", "on")
    cube, plane = TILE**3 / INNER**3, 32**2 / 30**2
    figure.text(left, top + 236, f"loads per result: {plane:.2f}", "s")
    figure.text(left, top + 254, f"(8 x 8 x 8 for 6 x 6 x 6: {cube:.1f})", "s")
    return figure.svg()


def register_march():
    """The three registers of a thread of register_tiled, plane after plane."""
    figure = Figure(
        640,
        318,
        "In each step of the march a thread loads one new cell, above; what was above becomes the centre, "
        "and what was the centre becomes below",
    )
    figure.text(16, 22, "register_tiled: three registers of a thread march along z", "t")
    left, width, top, height = 130, 80, 62, 58
    first, end = 4, 8
    for plane in range(first - 1, end + 1):
        figure.text(left + (plane - first + 1) * width + 32, 50, f"plane {plane}", "s m")
    below, centre = first - 1, first
    colours = {"below": "f1", "centre": "w0", "above": "w2"}
    for step, z in enumerate(range(first, end)):
        above = z + 1
        y = top + step * height
        figure.text(16, y + 20, f"compute z = {z}", "n")
        held = {"below": below, "centre": centre, "above": above}
        for name, plane in held.items():
            figure.cell(left + (plane - first + 1) * width, y, 64, 32, colours[name], name)
        if z + 1 < end:
            for plane in (centre, above):
                x = left + (plane - first + 1) * width + 32
                figure.arrow(x, y + 33, x, y + height - 1)
        below, centre = centre, above
    figure.key(16, 296, [("w2", "loaded in this step"), ("w0", "also stored to shared memory, for x and y")])
    return figure.svg()


def plane_ring():
    """The slots of async_ring, as its loop fills them (kRadius 1, kAhead 2)."""
    radius, ahead = 1, 2
    slots = ahead + radius + 1
    figure = Figure(
        640,
        330,
        "Four slots of shared memory as planes arrive: one plane is computed, the next one is read into registers, "
        "two are in flight; each new copy overwrites the slot of the oldest plane",
    )
    figure.text(16, 22, "async_ring with radius 1: four slots, two planes ahead", "t")
    left, width, top, height = 150, 116, 62, 42
    for slot in range(slots):
        figure.text(left + slot * width + 53, 50, f"slot {slot}", "s m")
    content, free, newest, first = {}, 0, 0, 1  # the block computes planes from 1 on
    for plane in range(newest, newest + ahead):
        content[free], free = plane, (free + 1) % slots
    shown = 0
    while shown < 5:
        content[free], free = newest + ahead, (free + 1) % slots
        if newest >= first + radius:
            z = newest - radius
            y = top + shown * height
            figure.text(16, y + 21, f"compute z = {z}", "n")
            for slot, plane in content.items():
                kind = {z: "w0", newest: "w1", newest + ahead: "w2"}.get(plane, "f2")
                figure.cell(left + slot * width, y, 106, 32, kind, f"plane {plane}")
            shown += 1
        newest += 1
    figure.key(16, 280, [("w0", "neighbours along x and y are read here"), ("w1", "newest: own cells to registers")])
    figure.key(16, 304, [("f2", "copy in flight"), ("w2", "copy issued now, into the slot of the oldest plane")])
    return figure.svg()


FIGURES = {"tile_halo": tile_halo, "register_march": register_march, "plane_ring": plane_ring}
