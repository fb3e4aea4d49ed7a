"""Day 1: where blocks run, and the memories that they use. The numbers are those of an H200."""

from figures.svg import Figure

SMS, BLOCKS_PER_ROW = 132, 2


def sm():
    figure = Figure(
        720, 360, "A GPU: SMs with their blocks, registers, shared memory and L1 cache; below them an L2 cache for all SMs and "
        "device memory",
    )

    def both_ways(x, top, bottom):
        figure.arrow(x, top, x, bottom)
        figure.arrow(x, bottom, x, top)

    figure.text(16, 22, "Where blocks run, and the memories they use", "t")
    figure.text(16, 42, f"an H200: {SMS} SMs, each with up to 2,048 threads; which block runs where is an example", "s")
    for colour, (x, number) in enumerate(((16, 0), (232, 1), (508, SMS - 1))):
        figure.rect(x, 56, 196, 172, "frame", 6)
        figure.text(x + 10, 76, f"SM {number}", "t")
        for row in range(BLOCKS_PER_ROW):
            figure.cell(x + 10 + 76 * row, 86, 70, 28, f"w{colour}", f"block {number + row * SMS}")
        figure.text(x + 174, 104, "...", "m")
        figure.rect(x + 10, 124, 176, 40)
        figure.text(x + 98, 142, "registers, 256 KB", "m")
        figure.text(x + 98, 157, "each thread has its own", "s m")
        figure.rect(x + 10, 174, 176, 44)
        figure.text(x + 98, 193, "shared memory, L1", "m")
        figure.text(x + 98, 209, "256 KB: blocks' parts, cache", "s m p")
        both_ways(x + 98, 231, 249)
    figure.text(468, 146, "...", "m")
    figure.rect(16, 252, 688, 34)
    figure.text(360, 274, "L2 cache, of all SMs", "m")
    both_ways(360, 289, 307)
    figure.rect(16, 310, 688, 42)
    figure.text(360, 328, "device memory (DRAM), 141 GB, 4.8 TB/s", "m")
    figure.text(360, 344, "a, b and c: what cudaMalloc returns; in a kernel: global memory", "s m")
    return figure.svg()


FIGURES = {"sm": sm}
