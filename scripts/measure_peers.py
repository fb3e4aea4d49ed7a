#!/usr/bin/env python3
"""Measures what a Python programmer would use (PyTorch, torch.compile, CuPy) on the problems of a
day, and adds the figures to the day's records, so that they stand beside ours from the same machine
and the same run.

    build/gpu/bin/day20_softmax --bench --json day20_softmax.jsonl
    scripts/measure_peers.py day20_softmax.jsonl

Needs an NVIDIA GPU, PyTorch, and CuPy for some peers; a peer whose library is missing is left out,
with a line that says so. The method is that of common/bench/benchmark.hpp: events around launches
that the host has queued while the GPU was kept busy, several between one pair of events when one is
short, repeats until the mean is known to 1 %; warm, and with the L2 flushed. What Python itself
takes is so not counted. Every peer is checked against the same work in double precision first (a
blur: its first 256 rows).
"""

import argparse
import copy
import datetime
import itertools
import math
import pathlib
import statistics
import sys

import torch

import records as record_files

SHORT_MS, BATCH_MS = 0.020, 0.200
MIN_REPEATS, MAX_REPEATS = 10, 200


class Timer:
    def __init__(self):
        self.flush_buffer = torch.empty(
            4 * torch.cuda.get_device_properties(0).L2_cache_size // 4, device="cuda"
        )

    def flush(self):
        self.flush_buffer.fill_(1.0)
        self.flush_buffer.sum()  # read again: lines only written would be written back while the work is timed

    def once(self, work, launches, before):
        before()
        torch.cuda._sleep(200_000 + 400_000 * launches)  # cycles in which the host queues what follows
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(launches):
            work()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / launches

    def measure(self, work, l2):
        before = self.flush if l2 == "flushed" else work
        for _ in range(3):
            work()
        estimate = min(self.once(work, 1, before) for _ in range(3))
        launches = 1
        if l2 == "warm" and estimate < SHORT_MS:
            launches = math.ceil(BATCH_MS / estimate)
        times = []
        while len(times) < MAX_REPEATS:
            times.append(self.once(work, launches, before))
            if len(times) >= MIN_REPEATS:
                error = statistics.stdev(times) / math.sqrt(len(times))
                if error < 0.01 * statistics.fmean(times):
                    break
        times.sort()
        quartiles = statistics.quantiles(times, n=4)
        return {
            "median_ms": statistics.median(times),
            "spread_ms": (quartiles[2] - quartiles[0]) / 2,
            "min_ms": times[0],
            "repeats": len(times),
            "launches_per_repeat": launches,
            "stopped_by": "precise" if len(times) < MAX_REPEATS else "repeat cap",
            "l2": l2,
        }


def numbers(text):
    """ "4096x1024" -> [4096, 1024]"""
    return [int(n) for n in text.split("x")]


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, dynamic=False)


# Each of these takes the words of a problem and yields (name, work, check): work() is timed,
# check() is its largest error relative to the largest expected value, and the bound for it.


def softmax_peers(words):
    rows, cols = numbers(words[1])
    torch.manual_seed(1)
    x = torch.randn(rows, cols, device="cuda")

    def check(work):
        step = max(1, (1 << 24) // cols)
        y, worst = work(), 0.0
        for row in range(0, rows, step):
            expected = torch.softmax(x[row : row + step].double(), dim=1)
            error = ((y[row : row + step] - expected).abs().amax() / expected.amax()).item()
            if worst == worst and not error <= worst:  # a NaN is kept
                worst = error
        return worst, 1e-5

    eager = lambda: torch.softmax(x, dim=1)
    function = compiled(lambda t: torch.softmax(t, dim=1))
    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", lambda: function(x), lambda: check(lambda: function(x))


def sum_peers(words):
    if words[1] == "by":
        return  # sums by key: another problem
    dtype, count = ("int32" if "integers" in words else "float"), int(words[-1])
    torch.manual_seed(1)
    if dtype == "float":
        x = torch.rand(count, device="cuda") * 2 - 1
        scale = x.double().abs().sum().item()
        bound = 1e-6
    else:
        x = torch.randint(-1000, 1001, (count,), device="cuda", dtype=torch.int32)
        scale, bound = 1.0, 0.0

    def check(work):
        expected = x.double().sum().item() if dtype == "float" else int(x.cpu().numpy().sum(dtype="int64"))
        return abs(work().item() - expected) / scale, bound

    eager = lambda: x.sum()
    function = compiled(lambda t: t.sum())
    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", lambda: function(x), lambda: check(lambda: function(x))


def blur_peers(words):
    rows, cols = numbers(words[1])[:2]
    size = numbers(words[2])[0]
    if len(numbers(words[1])) > 2:
        return
    torch.manual_seed(1)
    x = torch.rand(rows, cols, device="cuda")
    radius = size // 2
    taps = torch.exp(-((torch.arange(size, device="cuda") - radius).float() ** 2) / (2 * (size / 6) ** 2))
    taps /= taps.sum()
    weights = taps.tolist()

    def across(t):
        wide = torch.nn.functional.pad(t[None, None], (radius, radius, 0, 0), mode="replicate")[0, 0]
        return sum(w * wide[:, i : i + cols] for i, w in enumerate(weights))

    def down(t):
        high = torch.nn.functional.pad(t[None, None], (0, 0, radius, radius), mode="replicate")[0, 0]
        return sum(w * high[i : i + rows] for i, w in enumerate(weights))

    def check(work):
        top = slice(0, min(rows, 256))
        part = x[: min(rows, 256 + radius)].double()
        wide = torch.nn.functional.pad(part[None, None], (radius,) * 4, mode="replicate")[0, 0]
        across = sum(w * wide[:, i : i + cols] for i, w in enumerate(weights))
        height = min(rows, 256)
        expected = sum(w * across[i : i + height] for i, w in enumerate(weights))
        result = torch.as_tensor(work(), device="cuda").reshape(rows, cols)[top]
        return (result - expected).abs().max().item(), 1e-5

    # Each pass by itself: compiled together, the second pass computes the first one anew for each
    # of its taps.
    compiled_across, compiled_down = compiled(across), torch.compile(down, dynamic=False)
    passes = lambda: compiled_down(compiled_across(x))
    yield "torch_compile", passes, lambda: check(passes)

    # cuDNN gets its border for nothing: the padded picture is made before the clock runs.
    kernel = torch.outer(taps, taps)[None, None].contiguous()
    row_taps, column_taps = taps[None, None, None, :].contiguous(), taps[None, None, :, None].contiguous()
    padded = torch.nn.functional.pad(x[None, None], (radius,) * 4, mode="replicate")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    conv2d = torch.nn.functional.conv2d
    whole = lambda: conv2d(padded, kernel)
    two_passes = lambda: conv2d(conv2d(padded, row_taps), column_taps)
    yield "cudnn_conv2d", whole, lambda: check(whole)
    yield "cudnn_two_passes", two_passes, lambda: check(two_passes)

    try:
        import cupy
        from cupyx.scipy import ndimage
    except ImportError as error:
        print(f"left out: CuPy ({error})", file=sys.stderr)
        return
    picture, row = cupy.asarray(x), cupy.asarray(taps)

    def cupy_blur():
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            across = ndimage.correlate1d(picture, row, axis=1, mode="nearest")
            return ndimage.correlate1d(across, row, axis=0, mode="nearest")

    yield "cupy_correlate1d", cupy_blur, lambda: check(cupy_blur)


def quantize_peers(words):
    if words[3:] != ["symmetric", "per", "row"]:
        return
    rows, cols = numbers(words[2])
    torch.manual_seed(1)
    x = torch.randn(rows, cols, device="cuda", dtype=torch.float16 if words[1] == "half" else torch.float32)

    def quantize(t):
        scale = t.abs().amax(dim=1, keepdim=True).float() / 127
        return torch.round(t.float() / scale).to(torch.int8), scale

    def check(work):
        q, scale = work()
        worst = 0.0
        for row in range(0, rows, 1024):
            part = slice(row, row + 1024)
            steps = (q[part].double() - x[part].double() / scale[part].double()).abs().max().item()
            worst = max(worst, steps) if steps == steps else math.inf
        return worst, 0.501  # of a step

    function = compiled(quantize)
    yield "torch_compile", lambda: function(x), lambda: check(lambda: function(x))
    if x.dtype == torch.float16:
        yield from quantize_peers_of_bitsandbytes(x, check)


def quantize_peers_of_bitsandbytes(x, check):
    """bitsandbytes: a row's largest magnitude and its codes in one kernel."""
    try:
        import bitsandbytes
    except ImportError as error:
        print(f"bitsandbytes: left out, {error}")
        return

    def work():
        codes, largest, _ = bitsandbytes.functional.int8_vectorwise_quant(x)
        return codes, largest

    def codes_and_scales():
        codes, largest = work()
        return codes, largest.view(-1, 1) / 127

    yield "bitsandbytes", work, lambda: check(codes_and_scales)


def llm_int8_peers(words):
    """bitsandbytes' layer, as a model calls it, with and without its search for outlier columns. Its
    host waits for the search in each call: that wait is part of the time."""
    try:
        import bitsandbytes
    except ImportError as error:
        print(f"bitsandbytes: left out, {error}")
        return
    tokens, outputs, inputs = numbers(words[1])
    torch.manual_seed(1)
    x = torch.randn(tokens, inputs, device="cuda")
    if words[2] == "with":  # as many columns as in day 32's own problem, and as large
        count = max(1, inputs // 600)
        for i in range(count):
            x[:, i * inputs // count + inputs // (2 * count)].mul_(3).add_(40 if i % 2 == 0 else -40)
    x = x.half()
    w = torch.randn(outputs, inputs, device="cuda", dtype=torch.float16)

    def layer(threshold):
        result = bitsandbytes.nn.Linear8bitLt(
            inputs, outputs, bias=False, has_fp16_weights=False, threshold=threshold
        )
        result.weight = bitsandbytes.nn.Int8Params(w.cpu(), requires_grad=False, has_fp16_weights=False)
        return result.to("cuda").eval()

    def check(work, bound):
        top = min(tokens, 64)
        expected = x[:top].double() @ w.double().t()
        difference = work()[:top].double() - expected
        error = (difference.square().sum() / expected.square().sum()).sqrt().item()
        return error, bound

    # Day 32's own versions have errors of 0.012 on such layers, and without a threshold 0.056 where
    # there are outlier columns; the bounds leave twice as much.
    for name, threshold in (("bitsandbytes", 6.0), ("bitsandbytes_no_threshold", 0.0)):
        module = layer(threshold)
        work = torch.no_grad()(lambda module=module: module(x))
        bound = 0.112 if threshold == 0 and words[2] == "with" else 0.025
        yield name, work, lambda work=work, bound=bound: check(work, bound)


def int8_matmul_peers(words):
    m, n, k = numbers(words[1])
    if m <= 16 or k % 8 != 0 or n % 8 != 0:
        return  # more than torch._int_mm does
    torch.manual_seed(1)
    a = torch.randint(-128, 128, (m, k), device="cuda", dtype=torch.int8)
    w = torch.randint(-128, 128, (n, k), device="cuda", dtype=torch.int8)
    work = lambda: torch._int_mm(a, w.t())

    def check():
        top = min(m, 64)
        expected = a[:top].double() @ w.double().t()  # exact: below 2^53
        return (work()[:top].double() - expected).abs().max().item(), 0.0

    yield "torch_int_mm", work, check


def relative_error(work, expected):
    """The largest error beside the largest expected value."""
    return ((work().double() - expected).abs().amax() / expected.abs().amax()).item()


def score_peers(words):
    """The scoring functions of day 25: all states' scores for one hidden state."""
    states, width = numbers(words[1])
    torch.manual_seed(1)
    s, h = torch.randn(states, width, device="cuda"), torch.randn(width, device="cuda")
    columns = 2 * width if words[0] == "bahdanau" else width
    w = torch.randn(width, columns, device="cuda") / width**0.5
    v = torch.randn(width, device="cuda")
    functions = {
        "dot": lambda h, s, w, v: s @ h,
        "luong": lambda h, s, w, v: s @ (h @ w),
        "bahdanau": lambda h, s, w, v: torch.tanh(s @ w[:, width:].T + w[:, :width] @ h) @ v,
    }
    function = functions[words[0]]
    expected = function(h.double(), s.double(), w.double(), v.double())
    eager = lambda: function(h, s, w, v)
    fast = compiled(function)
    yield "pytorch_eager", eager, lambda: (relative_error(eager, expected), 1e-5)
    yield "torch_compile", lambda: fast(h, s, w, v), lambda: (
        relative_error(lambda: fast(h, s, w, v), expected),
        1e-5,
    )


def self_attention_peers(words):
    """From parts, as day 25 has them; and fused, in FP32."""
    batch, heads, tokens, columns = numbers(words[1])
    torch.manual_seed(1)
    q, k, v = (torch.randn(batch, tokens, heads, columns, device="cuda").transpose(1, 2) for _ in range(3))
    function = lambda q, k, v: torch.softmax(q @ k.transpose(2, 3) * columns**-0.5, dim=3) @ v
    expected = function(q.double(), k.double(), v.double())
    # The products as PyTorch is fastest at: packed matrices, the scale within the product.
    q3, k3, v3 = (x.reshape(batch * heads, tokens, columns).contiguous() for x in (q, k, v))
    nothing = torch.empty(1, 1, 1, device="cuda")  # beta = 0: not read

    def parts():
        scores = torch.baddbmm(nothing, q3, k3.transpose(1, 2), beta=0, alpha=columns**-0.5)
        return torch.bmm(torch.softmax(scores, dim=2), v3).view(batch, heads, tokens, columns)

    fused = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)
    yield "pytorch_parts", parts, lambda: (relative_error(parts, expected), 1e-5)
    yield "pytorch_sdpa", fused, lambda: (relative_error(fused, expected), 1e-5)


def attention_layer_peers(words):
    """nn.MultiheadAttention in FP32: as it is called by default, and without returning its weights,
    which lets it fuse.
    """
    batch, heads, tokens, columns = numbers(words[1])
    width = heads * columns
    torch.manual_seed(1)
    layer = (
        torch.nn.MultiheadAttention(width, heads, batch_first=True, device="cuda")
        .eval()
        .requires_grad_(False)
    )
    x = torch.randn(batch, tokens, width, device="cuda")
    exact = copy.deepcopy(layer).double()
    expected = exact(x.double(), x.double(), x.double())[0]
    fast = compiled(layer)
    calls = {
        "pytorch_multihead": lambda: layer(x, x, x)[0],
        "pytorch_no_weights": lambda: layer(x, x, x, need_weights=False)[0],
        "torch_compile": lambda: fast(x, x, x, need_weights=False)[0],
    }
    for name, call in calls.items():
        yield name, call, lambda: (relative_error(call, expected), 1e-5)


def fused_attention_peers(words):
    """scaled_dot_product_attention, each of its backends; checked by the last rows of every head."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    dtype = getattr(torch, words[1])
    batch, heads, tokens, columns = numbers(words[2])
    causal = "causal" in words
    torch.manual_seed(1)
    q, k, v = (torch.randn(batch, heads, tokens, columns, device="cuda", dtype=dtype) for _ in range(3))
    rows = min(tokens, max(1, (1 << 26) // (batch * heads * tokens)))

    def check(work):
        scores = q[:, :, -rows:].double() @ k.double().transpose(2, 3) * columns**-0.5
        if causal:
            places = torch.arange(tokens, device="cuda")
            scores.masked_fill_(places > places[-rows:, None], -math.inf)
        expected = torch.softmax(scores, dim=3) @ v.double()
        error = (work()[:, :, -rows:] - expected).abs().amax() / expected.abs().amax()
        return error.item(), {torch.float: 1e-5, torch.half: 4e-3, torch.bfloat16: 3e-2}[dtype]

    backends = {"pytorch_memory_efficient": SDPBackend.EFFICIENT_ATTENTION}
    if dtype != torch.float:
        backends = {"pytorch_flash": SDPBackend.FLASH_ATTENTION, "pytorch_cudnn": SDPBackend.CUDNN_ATTENTION}
    elif tokens <= 8192:
        backends["pytorch_math"] = SDPBackend.MATH
    for name, backend in backends.items():

        def work(backend=backend):
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        yield name, work, lambda: check(work)


def attention_backward_peers(words):
    """The backward pass of scaled_dot_product_attention; checked by all gradients of the first head."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    dtype = getattr(torch, words[1])
    batch, heads, tokens, columns = numbers(words[2])
    causal = "causal" in words
    torch.manual_seed(1)
    q, k, v, d_out = (
        torch.randn(batch, heads, tokens, columns, device="cuda", dtype=dtype) for _ in range(4)
    )
    inputs = [x.requires_grad_() for x in (q, k, v)]

    def check(work):
        first = [x.detach()[0, 0].double().requires_grad_() for x in inputs]
        scores = first[0] @ first[1].T * columns**-0.5
        if causal:
            places = torch.arange(tokens, device="cuda")
            scores = scores.masked_fill(places > places[:, None], -math.inf)
        expected = torch.autograd.grad(torch.softmax(scores, dim=1) @ first[2], first, d_out[0, 0].double())
        errors = [(g[0, 0] - e).abs().amax() / e.abs().amax() for g, e in zip(work(), expected)]
        return max(errors).item(), {torch.float: 1e-4, torch.half: 4e-3, torch.bfloat16: 3e-2}[dtype]

    backends = {"pytorch_memory_efficient": SDPBackend.EFFICIENT_ATTENTION}
    if dtype != torch.float:
        backends = {"pytorch_flash": SDPBackend.FLASH_ATTENTION, "pytorch_cudnn": SDPBackend.CUDNN_ATTENTION}
    for name, backend in backends.items():
        with sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        def work(out=out):
            return torch.autograd.grad(out, inputs, d_out, retain_graph=True)

        yield name, work, lambda: check(work)


def decoding_peers(words):
    """scaled_dot_product_attention with one query for each head. Ragged batches have no counterpart there."""
    if "ragged" in words:
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    dtype = getattr(torch, words[1])
    batch, heads, tokens, columns = words[2].split("x")
    heads, heads_kv = (heads.split(":") * 2)[:2]
    batch, heads, heads_kv, tokens, columns = map(int, (batch, heads, heads_kv, tokens, columns))
    torch.manual_seed(1)
    q = torch.randn(batch, heads, 1, columns, device="cuda", dtype=dtype)
    k, v = (torch.randn(batch, heads_kv, tokens, columns, device="cuda", dtype=dtype) for _ in range(2))
    group = heads // heads_kv

    def check(work):
        got = work().view(batch, heads_kv, group, columns)
        worst = largest = 0.0
        for b in range(batch):
            scores = (
                q[b].view(heads_kv, group, columns).double() @ k[b].double().transpose(1, 2) * columns**-0.5
            )
            expected = torch.softmax(scores, dim=2) @ v[b].double()
            worst = max(worst, (got[b] - expected).abs().amax().item())
            largest = max(largest, expected.abs().amax().item())
        return worst / largest, {torch.half: 4e-3, torch.bfloat16: 3e-2}[dtype]

    backends = {"pytorch_flash": SDPBackend.FLASH_ATTENTION, "pytorch_cudnn": SDPBackend.CUDNN_ATTENTION}
    for name, backend in backends.items():

        def work(backend=backend):
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=group > 1)

        yield name, work, lambda: check(work)


def paged_peers(words):
    """The pages of each sequence in order first, then scaled_dot_product_attention. PyTorch has no kernel
    that reads a block table without compilation."""
    if "ragged" in words:
        return
    page = 16
    batch, heads, tokens, columns = words[2].split("x")
    heads, heads_kv = (heads.split(":") * 2)[:2]
    batch, heads, heads_kv, tokens, columns = map(int, (batch, heads, heads_kv, tokens, columns))
    pages = tokens // page
    torch.manual_seed(1)
    q = torch.randn(batch, heads, 1, columns, device="cuda", dtype=torch.bfloat16)
    k, v = (
        torch.randn(batch * pages, heads_kv, page, columns, device="cuda", dtype=torch.bfloat16)
        for _ in range(2)
    )
    table = torch.randperm(batch * pages, device="cuda").view(batch, pages)
    group = heads // heads_kv

    def in_order(pool):
        return pool[table].transpose(1, 2).reshape(batch, heads_kv, tokens, columns)

    def work():
        return torch.nn.functional.scaled_dot_product_attention(
            q, in_order(k), in_order(v), enable_gqa=group > 1
        )

    def check():
        got = work().view(batch, heads_kv, group, columns)
        worst = largest = 0.0
        for b in range(batch):
            keys, values = (
                pool[table[b]].transpose(0, 1).reshape(heads_kv, tokens, columns).double() for pool in (k, v)
            )
            scores = q[b].view(heads_kv, group, columns).double() @ keys.transpose(1, 2) * columns**-0.5
            expected = torch.softmax(scores, dim=2) @ values
            worst = max(worst, (got[b] - expected).abs().amax().item())
            largest = max(largest, expected.abs().amax().item())
        return worst / largest, 3e-2

    yield "pytorch_gathered", work, check


def latent_peers(words):
    """scaled_dot_product_attention with one key for all heads, and the latent, its first part, as the value."""
    batch, heads, tokens, width = words[2].replace(":1x", "x").split("x")
    batch, heads, tokens, width = map(int, (batch, heads, tokens, width))
    rank = width - 64
    torch.manual_seed(1)
    q = torch.randn(batch, heads, 1, width, device="cuda", dtype=torch.bfloat16)
    cache = torch.randn(batch, 1, tokens, width, device="cuda", dtype=torch.bfloat16)

    def attention():
        return torch.nn.functional.scaled_dot_product_attention(
            q, cache, cache[..., :rank], scale=width**-0.5, enable_gqa=heads > 1
        )

    # All heads of a sequence as the rows of one matrix: two products and a softmax.
    def products():
        scores = q[:, :, 0] @ cache[:, 0].transpose(1, 2) * width**-0.5
        return torch.softmax(scores, dim=2) @ cache[:, 0, :, :rank]

    def check(work):
        got = work().view(batch, heads, rank)
        worst = largest = 0.0
        for b in range(batch):
            scores = q[b, :, 0].double() @ cache[b, 0].double().T * width**-0.5
            expected = torch.softmax(scores, dim=1) @ cache[b, 0, :, :rank].double()
            worst = max(worst, (got[b] - expected).abs().amax().item())
            largest = max(largest, expected.abs().amax().item())
        return worst / largest, 3e-2

    yield "pytorch_attention", attention, lambda: check(attention)
    yield "pytorch_products", products, lambda: check(products)


def mixture_peers(words):
    """A loop over experts, which selects the tokens of each. The random logits of the lesson, not the same numbers."""
    tokens, hidden, width, experts, chosen = numbers(words[1])
    torch.manual_seed(1)
    logits = torch.randn(tokens, experts, device="cuda")
    if "skewed" in words:
        logits -= 4 * torch.arange(experts, device="cuda") / experts
    x = torch.randn(tokens, hidden, device="cuda")
    weights = torch.randn(experts, hidden, width, device="cuda")

    def layer(logits, x, weights):
        values, choice = logits.topk(chosen, dim=1)
        gates = torch.softmax(values, dim=1)
        out = torch.zeros(tokens, width, device="cuda", dtype=x.dtype)
        for expert in range(experts):
            token, which = torch.where(choice == expert)
            out.index_add_(0, token, gates[token, which, None] * (x[token] @ weights[expert]))
        return out

    work = lambda: layer(logits, x, weights)

    def check():
        expected = layer(logits.double(), x.double(), weights.double())
        return ((work() - expected).abs().amax() / expected.abs().amax()).item(), 1e-5

    yield "pytorch_loop", work, check


def argmin_peers(words):
    """Minimum and index of each row of a product or of squared distances. First the matrix of them,
    if there is room for it. "64x512x512x64": of 64 products.
    """
    *count, m, n, k = numbers(words[3])
    if math.prod(count) * m * n > 1 << 32 or (count and words[2] != "dot"):
        return
    torch.manual_seed(1)
    a, b = torch.rand(*count, m, k, device="cuda") * 2 - 1, torch.rand(*count, k, n, device="cuda") * 2 - 1
    functions = {
        "dot": lambda a, b: (a @ b).min(dim=-1),
        "squared_l2": lambda a, b: ((a * a).sum(1)[:, None] + (b * b).sum(0) - 2 * (a @ b)).min(dim=1),
    }
    function = functions[words[2]]
    top = min(m, 256)
    expected = function(a[..., :top, :].double(), b.double()).values

    def check(work):
        return ((work().values[..., :top] - expected).abs().amax() / expected.abs().amax()).item(), 1e-5

    eager = lambda: function(a, b)
    fast = compiled(function)
    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", lambda: fast(a, b), lambda: check(lambda: fast(a, b))


def half_argmin_peers(words):
    """The same of 16-bit matrices; the products are rounded to 16 bits before they are compared."""
    dtype = getattr(torch, words[1])
    m, n, k = numbers(words[2])
    torch.manual_seed(1)
    a, b = ((torch.rand(rows, k, device="cuda") * 2 - 1).to(dtype) for rows in (m, n))
    function = lambda a, b: (a @ b.T).min(dim=1)
    top = min(m, 256)
    expected = function(a[:top].double(), b.double()).values

    def check(work):
        error = (work().values[:top].double() - expected).abs().amax() / expected.abs().amax()
        return error.item(), {torch.half: 1e-3, torch.bfloat16: 8e-3}[dtype]

    eager = lambda: function(a, b)
    fast = compiled(function)
    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", lambda: fast(a, b), lambda: check(lambda: fast(a, b))


def neighbour_peers(words):
    """The nearest by squared L2, as day 45: a matrix of distances (as much of them as matters:
    |a|^2 is the same for a row), then topk.
    """
    queries, points, depth = numbers(words[1].rstrip(","))
    k = int(words[-1])
    torch.manual_seed(1)
    largest = min(255, math.isqrt((1 << 23) // depth))  # whole numbers, as in the program
    a, b = (torch.randint(0, largest + 1, (n, depth), device="cuda").float() for n in (queries, points))
    function = lambda a, b: torch.topk((b * b).sum(1) - 2 * (a @ b.T), k, dim=1, largest=False)
    top = min(queries, 16)
    expected = function(a[:top].double(), b.double()).values

    def check(work):
        return ((work().values[:top] - expected).abs().amax() / expected.abs().amax()).item(), 1e-5

    eager = lambda: function(a, b)
    fast = compiled(function)
    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", lambda: fast(a, b), lambda: check(lambda: fast(a, b))


def half_neighbour_peers(words):
    """The same of 16-bit vectors. The products are rounded to 16 bits before the k best are selected,
    so that their order is not exact; the bound is that of this rounding.
    """
    dtype = getattr(torch, words[1])
    queries, points, depth = numbers(words[2].rstrip(","))
    k = int(words[-1])
    torch.manual_seed(1)
    largest = min(255, math.isqrt((1 << 23) // depth))
    a, b = (
        torch.randint(0, largest + 1, (n, depth), device="cuda").to(dtype) / largest
        for n in (queries, points)
    )
    function = lambda a, b: torch.topk((b * b).sum(1) - 2 * (a @ b.T), k, dim=1, largest=False)
    top = min(queries, 16)
    expected = function(a[:top].double(), b.double()).values

    def check(work):
        error = (work().values[:top].double() - expected).abs().amax() / expected.abs().amax()
        return error.item(), {torch.half: 2e-2, torch.bfloat16: 1e-1}[dtype]

    eager = lambda: function(a, b)
    fast = compiled(function)
    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", lambda: fast(a, b), lambda: check(lambda: fast(a, b))


def causal_score_peers(words):
    count, m, n, k = numbers(words[1])
    torch.manual_seed(1)
    q, keys = torch.randn(count, m, k, device="cuda"), torch.randn(count, n, k, device="cuda")
    future = torch.ones(m, n, dtype=torch.bool, device="cuda").triu(1)
    function = lambda q, keys: (torch.bmm(q, keys.transpose(1, 2)) * k**-0.5).masked_fill(future, -math.inf)
    expected = function(q[:2].double(), keys[:2].double())

    def check(work):
        got = work()[:2].double()
        same = (got == expected) | (
            (got - expected).abs() <= 1e-5 * expected[expected.isfinite()].abs().amax()
        )
        return (~same).sum().item(), 0

    eager = lambda: function(q, keys)
    fast = compiled(function)
    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", lambda: fast(q, keys), lambda: check(lambda: fast(q, keys))


def convolution_peers(words):
    """cuDNN through PyTorch: "forward 64x64x56x56x64x3x1" is N x C x H x W x K x R x stride, with a
    padding of R / 2.
    """
    n, c, h, w, k, r, stride = numbers(words[1])
    kind, options = words[0], {"stride": stride, "padding": r // 2}
    last = kind in ("forward_tf32", "forward_bf16")
    dtype = torch.bfloat16 if kind == "forward_bf16" else torch.float32
    order = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(n, c, h, w, device="cuda").to(dtype).to(memory_format=order)
    filters = torch.randn(k, c, r, r, device="cuda").to(dtype).to(memory_format=order)
    conv2d, grad = torch.nn.functional.conv2d, torch.nn.grad
    dy = torch.randn_like(conv2d(x, filters, **options))
    of_pass = {
        "backward_input": lambda x, f, dy: grad.conv2d_input(x.shape, f, dy, **options),
        "backward_weights": lambda x, f, dy: grad.conv2d_weight(x, f.shape, dy, **options),
    }
    run = of_pass.get(kind, lambda x, f, dy: conv2d(x, f, **options))
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = kind == "forward_tf32"

    # A bound for sums of products that are nearly independent, Winograd's and the rounding to TF32
    # or BF16 included.
    bound = {"forward_tf32": 2e-3, "forward_bf16": 1e-2}.get(kind, 1e-3)

    def check():
        few = slice(0, n if kind == "backward_weights" else min(n, 4))
        exact = run(x[few].double(), filters.double(), dy[few].double())
        got = run(x, filters, dy)
        return relative_error(lambda: got if kind == "backward_weights" else got[few], exact), bound

    yield "cudnn", lambda: run(x, filters, dy), check


def stencil_peers(words):
    """Sums of shifted views, as one compiled kernel per sweep: "7-point 512x512x512x100" is NX x NY x
    NZ x sweeps. A sweep writes the inner cells of the other grid; the boundary keeps its values.
    """
    points = int(words[0].split("-")[0])
    nx, ny, nz, sweeps = numbers(words[1])
    shape = [ny, nx] if points == 5 else [nz, ny, nx]
    radius = 4 if points == 25 else 1
    axes = range(len(shape))
    if points == 27:
        offsets = list(itertools.product((-1, 0, 1), repeat=3))
    else:
        distances = [d for d in range(-radius, radius + 1) if d != 0]
        offsets = [[0] * len(shape)] + [[d * (a == b) for b in axes] for a in axes for d in distances]
    weights = [(2 + i % 3) / (3.0 * points) for i in range(points)]  # all positive, their sum is about 1

    def view(grid, offset):
        return grid[tuple(slice(radius + d, n - radius + d) for d, n in zip(offset, shape))]

    def sweep(old, new):
        total = weights[0] * view(old, offsets[0])
        for weight, offset in zip(weights[1:], offsets[1:]):
            total = total + weight * view(old, offset)
        view(new, [0] * len(shape)).copy_(total)

    torch.manual_seed(11)
    grid = torch.rand(shape, device="cuda") * 2 - 1
    other = grid.clone()
    fast = compiled(sweep)

    def run(function, old, new, count):
        for _ in range(count):
            function(old, new)
            old, new = new, old
        return old

    def check():
        few = min(sweeps, 2)
        exact = grid.double()
        exact = run(sweep, exact, exact.clone(), few)
        got = run(fast, grid.clone(), grid.clone(), few)
        return relative_error(lambda: got, exact), 1e-5

    yield "torch_compile", lambda: run(fast, grid, other, sweeps), check


def random_cloud(extents, spacing, n):
    """Day 14's atoms: their places, half an angstrom further out than the box, and their charges."""
    torch.manual_seed(14)
    size = torch.tensor([e * spacing + 1 for e in extents], device="cuda")
    return torch.rand(n, 3, device="cuda") * size - 0.5, torch.rand(n, device="cuda") * 2 - 1


def potential_peers(words):
    """The potential of all atoms at all points: "all_pairs 64x64x64x4000" is NX x NY x NZ x atoms.
    Eager PyTorch has an array of all pairs, so it computes slice by slice.
    """
    nx, ny, nz, n = numbers(words[1])
    if nx * ny * n > 1 << 29:
        return
    atoms, charges = random_cloud((nx, ny, nz), 0.5, n)
    x, y, z = (0.5 * torch.arange(e, device="cuda") for e in (nx, ny, nz))

    def potential(x, y, z, atoms, charges):
        dx, dy, dz = (axis[:, None] - atoms[:, i] for i, axis in enumerate((x, y, z)))
        s = dz[:, None, None] ** 2 + dy[:, None] ** 2 + dx**2 + 1 / 4096
        return (charges * torch.rsqrt(s)).sum(-1)

    fast = compiled(potential)
    eager = lambda: torch.cat([potential(x, y, z[k : k + 1], atoms, charges) for k in range(nz)])
    once = lambda: fast(x, y, z, atoms, charges)

    def check(work):
        got, worst, largest = work(), 0.0, 0.0
        for k in range(0, nz, max(1, nz // 4)):
            row = ny // 2
            exact = potential(
                *(t.double() for t in (x, y[row : row + 1], z[k : k + 1], atoms, charges))
            )
            error = (got[k, row] - exact[0, 0]).abs().amax().item()
            if worst == worst and not error <= worst:  # a NaN is kept
                worst = error
            largest = max(largest, exact.abs().amax().item())
        return worst / largest, 1e-4

    yield "pytorch_eager", eager, lambda: check(eager)
    yield "torch_compile", once, lambda: check(once)


def energy_peers(words):
    """The energy of day 14's atoms. Each pair is computed twice: a triangle is no saving for PyTorch."""
    nx, ny, nz, n = numbers(words[1])
    atoms, charges = random_cloud((nx, ny, nz), 1, n)

    def shares(first, last, atoms, charges, absolute=False):
        d = [atoms[first:last, None, i] - atoms[:, i] for i in range(3)]
        inverse = torch.rsqrt(d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + 1 / 4096)
        own = torch.arange(first, last, device="cuda")[:, None] == torch.arange(n, device="cuda")
        q = charges.abs() if absolute else charges
        return torch.where(own, 0, q * inverse).sum(1).double() * q[first:last]

    energy = lambda atoms, charges: shares(0, n, atoms, charges).sum() / 2
    fast = compiled(energy)

    def check(work):
        exact = magnitude = 0.0
        step = max(1, (1 << 26) // n)
        for first in range(0, n, step):
            part = (first, min(first + step, n), atoms.double(), charges.double())
            exact += shares(*part).sum().item() / 2
            magnitude += shares(*part, absolute=True).sum().item() / 2
        return abs(work().item() - exact) / magnitude, 1e-5

    eager = lambda: energy(atoms, charges)
    if n * n <= 1 << 30:
        yield "pytorch_eager", eager, lambda: check(eager)
    once = lambda: fast(atoms, charges)
    yield "torch_compile", once, lambda: check(once)


def selective_scan_peers(words):
    """The recurrence of a state space model: step by step, as a CUDA graph, and as a scan."""
    batch, channels, length, states = numbers(words[1])
    torch.manual_seed(1)
    random = lambda *extents: torch.randn(*extents, device="cuda")
    x, b, c, d = random(batch, channels, length), *(random(batch, states, length) for _ in "bc"), random(channels)
    delta = 0.001 * torch.exp(torch.rand(batch, channels, length, device="cuda") * math.log(100))
    a = -torch.arange(1, states + 1, device="cuda", dtype=torch.float32).repeat(channels, 1)

    def pairs(delta, x, b):
        factors = torch.exp(delta[:, :, None, :] * a.to(delta)[None, :, :, None])
        return factors, (delta * x)[:, :, None, :] * b[:, None, :, :]

    def check(work):
        rows = slice(0, min(channels, 64))
        h, expected = 0, []
        wide = [t.double() for t in (delta[:, rows], x[:, rows], b, c)]
        for t in range(length):
            factor = torch.exp(wide[0][:, :, t, None] * a[rows].double())
            h = factor * h + (wide[0][:, :, t] * wide[1][:, :, t])[:, :, None] * wide[2][:, None, :, t]
            expected.append((h * wide[3][:, None, :, t]).sum(-1))
        expected = torch.stack(expected, -1) + d[rows, None].double() * wide[1]
        return relative_error(lambda: work()[:, rows], expected), 1e-4

    y = torch.empty_like(x)

    def steps():
        h = torch.zeros(batch, channels, states, device="cuda")
        for t in range(length):
            factor, offset = pairs(delta[:, :, t, None], x[:, :, t, None], b[:, :, t, None])
            h = torch.addcmul(offset[..., 0], factor[..., 0], h)
            y[:, :, t] = (h @ c[:, :, t, None])[..., 0]
        return y.addcmul_(d[:, None], x)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        steps()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        steps()

    def replayed():
        graph.replay()
        return y

    yield "pytorch_graph", graph.replay, lambda: check(replayed)

    try:
        from torch._higher_order_ops.associative_scan import associative_scan
    except ImportError as error:
        print(f"left out: torch_compile ({error})", file=sys.stderr)
        return

    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def by_scan(delta, x, b, c, d):
        h = associative_scan(combine, pairs(delta, x, b), dim=3, combine_mode="pointwise")[1]
        return (h * c[:, None, :, :]).sum(2) + d[:, None] * x

    function = compiled(by_scan)
    scan = lambda: function(delta, x, b, c, d)
    yield "torch_compile", scan, lambda: check(scan)


def max_pool_peers(words):
    n, c, h, w, window, stride = numbers(words[1])
    x = torch.randn(n, c, h, w, device="cuda")
    pool = lambda t: torch.nn.functional.max_pool2d(t, window, stride, window // 2)
    exact = pool(x.double())
    fast = compiled(pool)
    yield "pytorch_eager", lambda: pool(x), lambda: (relative_error(lambda: pool(x), exact), 0)
    yield "torch_compile", lambda: fast(x), lambda: (relative_error(lambda: fast(x), exact), 0)


def lenet_peers(words):
    """A step of the same training, recorded as a CUDA graph."""
    batch, nn = int(words[1]), torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    ).cuda()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    optimiser = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, foreach=True)
    x = torch.rand(batch, 1, 28, 28, device="cuda")
    labels = torch.randint(10, (batch,), device="cuda")

    def step():
        optimiser.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimiser.step()
        return loss

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def check():
        graph.replay()
        return (0 if float(loss) < 4 else math.inf), 0

    yield "pytorch_graph", graph.replay, check


PEERS = {
    "forward": convolution_peers,
    "forward_tf32": convolution_peers,
    "forward_bf16": convolution_peers,
    "backward_input": convolution_peers,
    "backward_weights": convolution_peers,
    "5-point": stencil_peers,
    "7-point": stencil_peers,
    "25-point": stencil_peers,
    "27-point": stencil_peers,
    "all_pairs": potential_peers,
    "energy": energy_peers,
    "max_pool": max_pool_peers,
    "lenet_step": lenet_peers,
    "nearest_neighbours": neighbour_peers,
    "nearest_neighbours_16_bit": half_neighbour_peers,
    "causal_scores": causal_score_peers,
    "argmin": argmin_peers,
    "selective_scan": selective_scan_peers,
    "argmin_16_bit": half_argmin_peers,
    "softmax": softmax_peers,
    "sum": sum_peers,
    "gaussian_blur": blur_peers,
    "quantize": quantize_peers,
    "int8_matmul": int8_matmul_peers,
    "llm_int8": llm_int8_peers,
    "fused_attention": fused_attention_peers,
    "hopper_attention": fused_attention_peers,
    "attention_backward": attention_backward_peers,
    "mixture": mixture_peers,
    "decoding": decoding_peers,
    "paged": paged_peers,
    "latent": latent_peers,
    "dot": score_peers,
    "luong": score_peers,
    "bahdanau": score_peers,
    "self_attention": self_attention_peers,
    "attention_layer": attention_layer_peers,
}


def measured(problem, ours, timer, eager_only):
    """The records of all peers on one problem; a peer that fails, or is wrong, is reported and left out."""
    records, failures = [], []
    words = problem.split()
    for name, work, check in PEERS.get(words[0], lambda words: ())(words):
        if eager_only and name == "torch_compile":
            continue
        try:
            error, bound = check()
            if not error <= bound:
                raise ArithmeticError(f"off by {error}; allowed is {bound}")
            for l2 in ("warm", "flushed"):
                record = {**ours, "version": name, "role": "peer", **timer.measure(work, l2)}
                record.pop("figures", None)  # of ours
                record.pop("kernel", None)
                record |= {
                    "requested_bytes": 0,
                    "percent_of_limit": None,
                    "verified": True,
                    "max_error": error,
                }
                record["cuda"] = torch.version.cuda
                record["compiler"] = f"PyTorch {torch.__version__}"
                record["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
                rate = record["bytes"] / record["median_ms"] / 1e6
                print(f"{problem:36} {name:18} {l2:8} {record['median_ms'] * 1e3:10.2f} us {rate:8.0f} GB/s")
                records.append(record)
        except Exception as error:
            failures.append(f"{problem}: {name}: {error}")
    torch.cuda.empty_cache()
    return records, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "records",
        type=pathlib.Path,
        help="the file of records that a day's program wrote; peers are added to it",
    )
    parser.add_argument(
        "--eager", action="store_true", help="without torch.compile, which takes seconds for each problem"
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("measure_peers.py: PyTorch finds no GPU")
    records = record_files.read(arguments.records)

    device = torch.cuda.get_device_name(0)
    ours_of = {}
    for record in records:
        if record["role"] == "ours" and record["device"] == device:
            ours_of.setdefault(record["problem"], record)
    if not ours_of:
        sys.exit(f"measure_peers.py: {arguments.records} has nothing that was measured on {device}")
    timer, added, failures = Timer(), [], []
    for problem, ours in ours_of.items():
        more, wrong = measured(problem, ours, timer, arguments.eager)
        added += more
        failures += wrong
    key = lambda record: (record["problem"], record["version"], record["l2"])
    new = {key(record) for record in added}
    records = [record for record in records if key(record) not in new] + added
    record_files.write(arguments.records, records)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
