"""Day 8: which call returns an asynchronous error."""

from figures.svg import Figure


def asynchronous():
    """Lengths are not measured."""
    left, host, device = 92, 48, 110
    figure = Figure(
        700,
        196,
        "The host launches a kernel and goes on; cudaGetLastError returns success, because the kernel still runs. It fails while "
        "cudaMemcpy waits for it, so cudaMemcpy returns the error, and every later call does",
    )
    figure.text(16, 22, "asynchronous: the error comes back with the first call that waits", "t")
    figure.text(16, host + 20, "host")
    figure.text(16, device + 20, "GPU")
    calls = (
        (0, 62, "cell", "launch"),
        (66, 132, "f1", "cudaGetLastError"),
        (202, 226, "idle", "cudaMemcpy waits for the kernel"),
        (432, 166, "f2", "cudaDeviceSynchronize"),
    )
    for start, width, kind, words in calls:
        figure.cell(left + start, host, width, 30, kind, words)
    figure.cell(left + 62, device, 316, 30, "w0", "kernel")
    figure.cell(left + 380, device, 48, 30, "w2", "fails")
    figure.arrow(left + 31, host + 32, left + 60, device + 14)
    figure.arrow(left + 404, device - 2, left + 426, host + 34, hot=True)
    figure.text(left + 132, host + 48, "cudaSuccess", "s m")
    figure.text(left + 390, host + 48, "returns cudaErrorIllegalAddress", "s e")
    figure.text(left + 438, host + 48, "so does each later call", "s")
    figure.text(16, 182, "time to the right; the lengths are not measured", "s")
    return figure.svg()


FIGURES = {"asynchronous": asynchronous}
