"""Day 4: an SM and its memories with their latencies and bandwidths, and latency by size. All figures come from records.
Beyond: what an SM gets, by the size of its piece; drawn once there are records of it."""

import json
import math
import pathlib

from figures.svg import Figure

RECORDS = pathlib.Path(__file__).resolve().parents[2] / "docs/measurements/h200/day04_memory_hierarchy.jsonl"
SIZES = {"16 KB": 14, "128 KB": 17, "1 MB": 20, "16 MB": 24, "32 MB": 25, "64 MB": 26, "256 MB": 28, "1 GB": 30}
PIECES = {"16 KB": 14, "64 KB": 16, "128 KB": 17, "192 KB": 17.585, "256 KB": 18, "512 KB": 19, "1 MB": 20}


def records():
    """{(problem, version): record}, with a warm cache."""
    lines = [json.loads(line) for line in RECORDS.read_text().splitlines()[1:]]
    return {(one["problem"], one["version"]): one for one in lines if one["l2"] == "warm"}


def nanoseconds(version, size):
    one = records().get((f"chase {size}", version))
    return dict(one["figures"])["ns per load"] if one else None


def terabytes(version, size):
    one = records()[f"read {size}, 64 warps per SM", version]
    return one["bytes"] / one["median_ms"] / 1e9


def memories():
    l1, shared = nanoseconds("chase", "16 KB"), nanoseconds("chase_shared", "16 KB")
    l2, dram = nanoseconds("chase", "1 MB"), nanoseconds("chase", "1 GB")
    from_l2, from_dram = terabytes("read_wide", "32 MB"), terabytes("read_wide", "1 GB")
    figure = Figure(
        740, 330, f"One of 132 SMs: registers of a thread; shared memory, {shared:.0f} ns; L1, {l1:.0f} ns. Below, for all SMs, "
        f"L2: {l2:.0f} ns, {from_l2:.1f} TB/s. Below it DRAM: {dram:.0f} ns, {from_dram:.1f} TB/s",
    )
    figure.text(550, 22, "latency", "t")
    figure.text(640, 22, "bandwidth", "t")
    figure.rect(10, 36, 520, 136, "frame")
    figure.text(20, 56, "an SM, one of 132", "s")
    figure.cell(20, 66, 500, 28, "f1", "registers: of one thread", small=False)
    figure.cell(20, 104, 240, 58, "f0", "shared memory: of one block", small=False)
    figure.cell(280, 104, 240, 58, "f0", "L1: a cache of the SM", small=False)
    figure.text(270, 184, "the same 256 KB", "s m")
    figure.text(550, 127, f"{shared:.0f} ns, shared")
    figure.text(550, 151, f"{l1:.0f} ns, L1")
    figure.arrow(400, 214, 400, 166)
    figure.cell(10, 216, 520, 34, "f2", "L2: a cache of all SMs", small=False)
    figure.text(550, 238, f"{l2:.0f} ns")
    figure.text(640, 238, f"{from_l2:.1f} TB/s")
    figure.arrow(400, 282, 400, 252)
    figure.cell(10, 284, 520, 34, "f3", "DRAM", small=False)
    figure.text(550, 306, f"{dram:.0f} ns")
    figure.text(640, 306, f"{from_dram:.1f} TB/s")
    return figure.svg()


def latency():
    left, right, top, bottom, most = 60, 700, 30, 250, 400

    def place(size, value):
        x = left + (right - left) * (SIZES[size] - 14) / 16
        return x, bottom - (bottom - top) * value / most

    figure = Figure(720, 310, "Nanoseconds per load by the size of the list, for chase, chase_l2 and chase_shared")
    for value in range(0, most + 1, 100):
        y = place("16 KB", value)[1]
        figure.line(left, y, right, y, "dash")
        figure.text(left - 8, y + 4, value, "n e")
    figure.text(10, 18, "ns per load", "s")
    for size in SIZES:
        x = place(size, 0)[0]
        figure.line(x, bottom, x, bottom + 5, "frame")
        if size != "32 MB":
            figure.text(x, bottom + 22, size, "n m")
    figure.text((left + right) / 2, bottom + 46, "size of the list", "s m")
    for version, kind in (("chase_l2", "w2"), ("chase", "w0"), ("chase_shared", "w1")):
        points = [(size, value) for size in SIZES if (value := nanoseconds(version, size)) is not None]
        for (size, value), (next_size, next_value) in zip(points, points[1:]):
            figure.line(*place(size, value), *place(next_size, next_value), "frame")
        for size, value in points:
            figure.circle(*place(size, value), 5, kind)
    for version, size, dx, dy in (("chase", "128 KB", 14, 8), ("chase_l2", "128 KB", 0, -12), ("chase_shared", "16 KB", 6, -14)):
        value = nanoseconds(version, size) or nanoseconds(version, "16 KB")
        x, y = place(size, value)
        figure.text(x + dx, y + dy, version, "s")
    return figure.svg()


def bandwidth_near():
    """GB/s of an SM that reads its piece again and again, by the size of the piece."""
    sizes = {size: exponent for size, exponent in PIECES.items() if ("again, " + size + " per SM", "again_l1") in records()}

    def gigabytes(version, size):
        one = records().get((f"again, {size} per SM", version))
        return dict(one["figures"]).get("GB/s per SM") if one else None

    versions = (("again_shared", "w1"), ("again_l1", "w0"), ("again_small_l1", "w2"))
    values = {(version, size): gigabytes(version, size) for version, _ in versions for size in sizes}
    most = 50 * math.ceil(max(value for value in values.values() if value is not None) / 50)
    left, right, top, bottom = 60, 560, 30, 250
    first, last = min(sizes.values()), max(sizes.values())

    def place(size, value):
        return left + (right - left) * (sizes[size] - first) / (last - first), bottom - (bottom - top) * value / most

    figure = Figure(720, 310, "GB/s of an SM by the size of its piece, for again_l1, again_small_l1 and again_shared")
    for value in range(0, most + 1, 50):
        y = bottom - (bottom - top) * value / most
        figure.line(left, y, right, y, "dash")
        figure.text(left - 8, y + 4, value, "n e")
    figure.text(10, 18, "GB/s of an SM", "s")
    for size in sizes:
        x = place(size, 0)[0]
        figure.line(x, bottom, x, bottom + 5, "frame")
        if size != "192 KB":
            figure.text(x, bottom + 22, size, "n m")
    figure.text((left + right) / 2, bottom + 46, "piece of an SM", "s m")
    for row, (version, kind) in enumerate(versions):
        points = [(size, values[version, size]) for size in sizes if values[version, size] is not None]
        for (size, value), (next_size, next_value) in zip(points, points[1:]):
            figure.line(*place(size, value), *place(next_size, next_value), "frame")
        for size, value in points:
            figure.circle(*place(size, value), 5, kind)
        figure.circle(right + 30, top + 10 + 24 * row, 5, kind)
        figure.text(right + 42, top + 14 + 24 * row, version, "s")
    return figure.svg()


FIGURES = {"memories": memories, "latency": latency}
if ("again, 16 KB per SM", "again_l1") in records():
    FIGURES["bandwidth_near"] = bandwidth_near
