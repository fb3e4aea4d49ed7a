#!/usr/bin/env python3
"""What a call costs from Python: of this package's functions, and of PyTorch's that do the same.

    python/measure_calls.py --out calls.jsonl        about a minute on a GPU
    python/measure_calls.py --table calls.jsonl      the records as a table

For each function and problem:
    kernel        the GPU's time: events around calls that were queued while the GPU was kept busy
    C++           the host's time in the day's own function, which checks and launches
    Python        the host's time of the whole call, results into `out`, nothing waited for
    with results  the same, results in new tensors of the library's allocator
    and waits     the same, and the host waits for the GPU after each call
    allocates     the same, with the allocator's memory given back before, so that cudaMalloc runs
    copies        the same, with inputs copied from the CPU and the result copied back: the whole of
                  what a binding costs that knows host arrays only
Each measurement is an NVTX range of its name, around the range of the function itself. Needs a GPU,
a package built for it, and PyTorch.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import sys
import time

STEPS = ["kernel", "C++", "Python", "with results", "and waits", "allocates", "copies"]


class Case:
    """`call(*inputs, out)` ours, with out None for new results; `torch(*inputs)` PyTorch's, or None."""

    def __init__(self, name, problem, inputs, call, peer=None, out=True):
        self.name, self.problem, self.inputs, self.call, self.peer, self.takes_out = (
            name,
            problem,
            inputs,
            call,
            peer,
            out,
        )


def cases(torch, cdd):
    def randn(*shape, dtype=torch.float32):
        return torch.randn(*shape, device="cuda").to(dtype)

    functional = torch.nn.functional
    half, bfloat16 = torch.float16, torch.bfloat16
    yield Case(
        "quantize",
        "4096x4096 float16",
        [randn(4096, 4096, dtype=half)],
        lambda x, out: cdd.quantize(x, out=out),
    )
    for rows, cols in ((64, 128), (4096, 1024), (1024, 32768)):
        yield Case(
            "softmax",
            f"{rows}x{cols}",
            [randn(rows, cols)],
            lambda x, out: cdd.softmax(x, out=out),
            lambda x: torch.softmax(x, -1),
        )
    for size in (1 << 14, 1 << 24):
        yield Case(
            "scan",
            str(size),
            [randn(size)],
            lambda x, out: cdd.scan(x, out=out),
            lambda x: torch.cumsum(x, 0),
        )
        yield Case(
            "sort", str(size), [randn(size)], lambda x, out: cdd.sort(x, out=out), lambda x: torch.sort(x)
        )
    yield Case(
        "topk",
        "1024x10000, k = 64",
        [randn(1024, 10000)],
        lambda x, out: cdd.topk(x, 64, out=out),
        lambda x: torch.topk(x, 64),
    )
    for dtype in (torch.float32, bfloat16):
        yield Case(
            "bmm",
            f"64x512x512x512 {str(dtype)[6:]}",
            [randn(64, 512, 512, dtype=dtype), randn(64, 512, 512, dtype=dtype)],
            lambda a, b, out: cdd.bmm(a, b, out=out),
            torch.bmm,
        )
    vectors = [randn(1, 8192, 64), randn(1, 8192, 64).transpose(1, 2)]
    yield Case(
        "bmm_argmin",
        "8192x8192x64",
        vectors,
        lambda a, b, out: cdd.bmm_argmin(a, b, out=out),
        lambda a, b: torch.bmm(a, b).min(-1),
    )
    yield Case(
        "bmm_topk",
        "1024x131072x64, k = 32",
        [randn(1024, 64), randn(131072, 64).T],
        lambda a, b, out: cdd.bmm_topk(a, b, 32, out=out),
        lambda a, b: torch.topk(a @ b, 32),
    )
    hidden = torch.ones(1024, 1024, dtype=torch.bool, device="cuda").triu(1)
    yield Case(
        "bmm_masked",
        "32x1024x1024x64 causal",
        [randn(32, 1024, 64), randn(32, 64, 1024)],
        lambda a, b, out: cdd.bmm_masked(a, b, causal=True, out=out),
        lambda a, b: torch.bmm(a, b).masked_fill_(hidden, 0),
    )
    for dtype, length in ((bfloat16, 128), (bfloat16, 4096), (torch.float32, 2048)):
        shape = (4, 16, length, 64)
        yield Case(
            "attention",
            f"{'x'.join(map(str, shape))} {str(dtype)[6:]}",
            [randn(*shape, dtype=dtype) for _ in range(3)],
            lambda q, k, v, out: cdd.attention(q, k, v, out=out),
            functional.scaled_dot_product_attention,
        )
    lengths = torch.full((16,), 4096, dtype=torch.int32, device="cuda")
    cache = [randn(16, 8, 4096, 128, dtype=bfloat16) for _ in range(2)]
    yield Case(
        "decode_attention",
        "16x32:8x4096x128 bfloat16",
        [randn(16, 32, 1, 128, dtype=bfloat16), *cache],
        lambda q, k, v, out: cdd.decode_attention(q, k, v, lengths, out=out),
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, enable_gqa=True),
    )

    def with_gradient(function):
        def step(q, k, v):
            for x in (q, k, v):
                x.grad = None
            function(q, k, v).sum().backward()
            return q.grad

        return step

    inputs = [randn(2, 16, 2048, 64, dtype=bfloat16).requires_grad_() for _ in range(3)]
    ours = with_gradient(cdd.attention)
    yield Case(
        "attention and its gradient",
        "2x16x2048x64 bfloat16",
        inputs,
        lambda q, k, v, out: ours(q, k, v),
        with_gradient(functional.scaled_dot_product_attention),
        out=False,
    )
    theirs = torch.nn.MultiheadAttention(512, 8, batch_first=True, device="cuda").eval()
    layer = cdd.AttentionLayer.from_torch(theirs)
    theirs.requires_grad_(False)
    layer.requires_grad_(False)
    yield Case(
        "AttentionLayer",
        "4x2048x512, 8 heads, float32",
        [randn(4, 2048, 512)],
        lambda x, out: layer(x, x, x)[0],
        lambda x: theirs(x, x, x, need_weights=False)[0],
        out=False,
    )
    rows, width = 1 << 18, 16
    columns = torch.randint(0, rows, (rows, width)).sort(1).values.flatten()
    sparse = torch.sparse_csr_tensor(
        torch.arange(rows + 1) * width, columns, torch.randn(rows * width), size=(rows, rows)
    )
    matrix, on_device = cdd.SparseMatrix(sparse), sparse.cuda()
    yield Case(
        "spmv",
        f"{rows} rows of {width}",
        [randn(rows)],
        lambda x, out: cdd.spmv(matrix, x, out=out),
        lambda x: on_device @ x,
    )
    yield Case(
        "conv2d",
        "32x64x56x56, 64 of 3x3",
        [randn(32, 64, 56, 56), randn(64, 64, 3, 3)],
        lambda x, w, out: cdd.conv2d(x, w, padding=1, out=out),
        lambda x, w: functional.conv2d(x, w, padding=1),
    )


def tensors_of(result):
    if hasattr(result, "data_ptr"):
        return [result]
    return [x for x in result if hasattr(x, "data_ptr")]


def measure(torch, extension, case, seconds):
    """Microseconds: the medians of each step, ours and PyTorch's."""

    def repeat(step, work, before=None):
        times = []
        with torch.cuda.nvtx.range(step):
            until = time.perf_counter() + seconds
            while len(times) < 5 or (time.perf_counter() < until and len(times) < 200):
                if before:
                    before()
                torch.cuda.synchronize()
                start = time.perf_counter_ns()
                extra = work()
                times.append((time.perf_counter_ns() - start if extra is None else extra) / 1000)
        torch.cuda.synchronize()
        return statistics.median(times)

    def kernel(work, count):
        """The GPU is kept busy until all calls are queued."""
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(400_000 + 400_000 * count)
        start.record()
        for _ in range(count):
            work()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e6 / count

    def waited(work):
        work()
        torch.cuda.synchronize()

    on_cpu = [x.detach().cpu() for x in case.inputs]

    def copied(work):
        inputs = [x.to("cuda").requires_grad_(like.requires_grad) for x, like in zip(on_cpu, case.inputs)]
        for result in tensors_of(work(*inputs)):
            result.cpu()

    def all_steps(function, out):
        work = lambda: function(*case.inputs)
        first = work()
        torch.cuda.synchronize()
        start = time.perf_counter()
        waited(work)
        count = max(1, min(20, int(0.005 / (time.perf_counter() - start))))
        steps = {"kernel": repeat("kernel", lambda: kernel(work, count))}
        if function is ours:

            def launched():
                before = extension.launching_ns()
                waited(work)  # a gradient is computed by another thread
                return extension.launching_ns() - before

            steps["C++"] = repeat("C++", launched)
        if out:
            given = tuple(tensors_of(first)) if len(tensors_of(first)) > 1 else tensors_of(first)[0]
            if case.name == "quantize":
                given = first
            steps["Python"] = repeat("Python", lambda: waste(case.call(*case.inputs, given)))
        steps["with results"] = repeat("with results", lambda: waste(work()))
        steps["and waits"] = repeat("and waits", lambda: waited(work))
        steps["allocates"] = repeat("allocates", lambda: waited(work), torch.cuda.empty_cache)
        steps["copies"] = repeat("copies", lambda: copied(function), torch.cuda.empty_cache)
        return steps

    def waste(_):
        return None

    ours = lambda *inputs: case.call(*inputs, None)
    with torch.cuda.nvtx.range(f"{case.name} {case.problem}"):
        record = {"ours": all_steps(ours, case.takes_out)}
        if case.peer:
            with torch.cuda.nvtx.range("PyTorch"):
                record["PyTorch"] = all_steps(case.peer, False)
    return record


def table(lines):
    head, *records = [json.loads(line) for line in lines if line.strip()]
    print(f"Microseconds, medians; {head['device']}, PyTorch {head['torch']}, commit {head['commit']}\n")
    print("| function | problem | whose |", " | ".join(STEPS), "|")
    print("|---|---|---|" + "---:|" * len(STEPS))
    for record in records:
        for whose in ("ours", "PyTorch"):
            if whose in record:
                numbers = (f"{record[whose][step]:.4g}" if step in record[whose] else "" for step in STEPS)
                print(f"| {record['function']} | {record['problem']} | {whose} |", " | ".join(numbers), "|")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, help="write records, a line of JSON each")
    parser.add_argument(
        "--table", type=pathlib.Path, help="print these records as a table, and measure nothing"
    )
    parser.add_argument("--only", default="", help="functions whose name has this in it")
    parser.add_argument("--seconds", type=float, default=0.1, help="for each number (default: 0.1)")
    parser.add_argument("--commit", default="unknown", help="to write down beside the figures")
    options = parser.parse_args()
    if options.table:
        return table(options.table.read_text().splitlines())

    # The installed package, not its sources, which stand beside this file and have no extension.
    sources = str(pathlib.Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != sources]
    import torch

    import cuda_day_by_day as cdd
    from cuda_day_by_day import _extension

    if cdd.kernels_run_on != "gpu" or not torch.cuda.is_available():
        sys.exit("measure_calls.py: needs a GPU, and the package built for it")
    torch.manual_seed(20)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    head = {
        "format": "calls from Python 1",
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "commit": options.commit,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    lines = [json.dumps(head)]
    for case in cases(torch, cdd):
        if options.only not in case.name:
            continue
        try:
            record = {
                "function": case.name,
                "problem": case.problem,
                **measure(torch, _extension, case, options.seconds),
            }
        except Exception as error:  # the other functions are still to be measured
            print(f"{case.name} {case.problem}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        lines.append(json.dumps(record))
        if options.out:
            options.out.write_text("\n".join(lines) + "\n")
    table(lines)
    return None


if __name__ == "__main__":
    main()
