"""How tensors come in and go out: no copies, lifetimes, streams, and what a mistake gives."""

import gc
import threading

import numpy as np
import pytest

import cuda_day_by_day as cdd


def matrix(random, shape=(12, 40), dtype=np.float32):
    return random.standard_normal(shape).astype(dtype)


def test_library_is_here(library_or_skip):
    """Says which libraries the other tests run without."""


def test_results_are_tensors_of_the_callers_library(library, random):
    x = library.tensor(matrix(random, dtype=np.float16))
    q = cdd.quantize(x, scheme="asymmetric")
    results = [
        *q[:3],
        cdd.dequantize(q),
        *cdd.quantize_blocks(x)[:2],
        cdd.int8_matmul(q.values, q.values),
        cdd.Int8Linear(x)(x),
    ]
    for result in results:
        assert isinstance(result, library.kind)
        if library.name == "torch":
            assert result.device == x.device


def test_out_is_written_in_place_and_returned(library, random):
    x = library.tensor(matrix(random, dtype=np.float16))
    expected = cdd.quantize(x, scheme="asymmetric", per="column")
    out = library.empty((12, 40), "int8"), library.empty(40, "float32"), library.empty(40, "int32")
    addresses = [library.address(tensor) for tensor in out]
    q = cdd.quantize(x, scheme="asymmetric", per="column", out=out)
    for got, given, address, wanted in zip(q, out, addresses, expected):
        assert got is given and library.address(got) == address
        np.testing.assert_array_equal(library.numpy(got), library.numpy(wanted))

    again = library.empty((12, 40), "int8")
    assert cdd.quantize_with(x, q.scale, q.zero_point, per="column", out=again).values is again
    np.testing.assert_array_equal(library.numpy(again), library.numpy(q.values))
    scale = library.empty(12, "float32")
    assert cdd.find_parameters(x, out=(scale, None))[0] is scale
    np.testing.assert_array_equal(library.numpy(scale), library.numpy(cdd.quantize(x).scale))
    for wanted, call in [
        (cdd.dequantize(q), lambda out: cdd.dequantize(q, out=out)),
        (cdd.int8_matmul(q.values, q.values), lambda out: cdd.int8_matmul(q.values, q.values, out=out)),
        (cdd.Int8Linear(x)(x), lambda out: cdd.Int8Linear(x)(x, out=out)),
    ]:
        wanted = library.numpy(wanted)
        given = library.matrix_in_a_wider_one(np.zeros_like(wanted), 3)
        assert call(given) is given
        np.testing.assert_array_equal(library.numpy(given), wanted)
    blocks = cdd.quantize_blocks(x)
    given = library.empty((12, 20), "uint8"), library.empty((12, 1), "float32")
    assert cdd.quantize_blocks(x, out=given).codes is given[0]
    np.testing.assert_array_equal(library.numpy(given[0]), library.numpy(blocks.codes))


@pytest.mark.parametrize("gap", [1, 8])
def test_rows_may_lie_apart(library, random, gap):
    x = matrix(random, dtype=np.float16)
    apart = library.matrix_in_a_wider_one(x, gap)
    for call in (cdd.quantize, cdd.quantize_blocks):
        for got, expected in zip(call(apart)[:2], call(library.tensor(x))[:2]):
            np.testing.assert_array_equal(library.numpy(got), library.numpy(expected))
    layer = cdd.Int8Linear(library.tensor(x))
    np.testing.assert_array_equal(library.numpy(layer(apart)), library.numpy(layer(library.tensor(x))))
    between = library.matrix_in_a_wider_one(np.zeros((12, 40), np.int8), gap)
    q = cdd.quantize_with(library.tensor(x), cdd.quantize(library.tensor(x)).scale, out=between)
    np.testing.assert_array_equal(
        library.numpy(cdd.dequantize(q)), library.numpy(cdd.dequantize(cdd.quantize(apart)))
    )


def test_results_outlive_their_inputs(library, random):
    expected = [
        library.numpy(cdd.quantize(library.tensor(matrix(np.random.default_rng(i)))).values)
        for i in range(20)
    ]
    results = [cdd.quantize(library.tensor(matrix(np.random.default_rng(i)))).values for i in range(20)]
    gc.collect()
    rubbish = [library.tensor(np.full((12, 40), 99, np.float32)) for _ in range(50)]
    for got, wanted in zip(results, expected):
        np.testing.assert_array_equal(library.numpy(got), wanted)
    assert len(rubbish) == 50


def test_no_reference_is_kept(library, random):
    import sys

    x = library.tensor(matrix(random))
    before = sys.getrefcount(x)
    for _ in range(10):
        cdd.quantize(x)
        with pytest.raises(ValueError):
            cdd.quantize(x, per="diagonal")
    gc.collect()
    assert sys.getrefcount(x) == before


def test_the_same_tensor_twice(library, random):
    a = library.tensor(random.integers(-128, 128, (9, 40)).astype(np.int8))
    expected = library.numpy(a).astype(np.int32) @ library.numpy(a).astype(np.int32).T
    np.testing.assert_array_equal(library.numpy(cdd.int8_matmul(a, a)), expected)
    np.testing.assert_array_equal(library.numpy(cdd.int8_matmul(a[2:], a[:7])), expected[2:, :7])


def test_threads_may_share_tensors(library, random):
    x = library.tensor(matrix(random, (60, 300)))
    expected = library.numpy(cdd.quantize(x).values)
    results = []

    def work():
        for _ in range(5):
            results.append(library.numpy(cdd.quantize(x).values))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_read_only_input_is_read():
    x = np.ones((3, 4), np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(cdd.quantize(x).values, np.full((3, 4), 127))
    with pytest.raises(ValueError, match="out .*written.*expected .*not read-only"):
        cdd.dequantize(cdd.quantize(x), out=x)


def test_mistakes_are_named(library, random):
    f = library.tensor(matrix(random))
    half = library.tensor(matrix(random, dtype=np.float16))
    q = cdd.quantize(f)
    layer = cdd.Int8Linear(half)
    int8 = library.empty((12, 40), "int8")
    cases = [
        (TypeError, "x is of type list; expected a tensor", lambda: cdd.quantize([[1.0]])),
        (
            TypeError,
            "x is float64; expected float32 or float16",
            lambda: cdd.quantize(library.tensor(matrix(random, dtype=np.float64))),
        ),
        (TypeError, "out.values is float32; expected int8", lambda: cdd.quantize(f, out=(f, q.scale, None))),
        (TypeError, "a is float32; expected int8", lambda: cdd.int8_matmul(f, int8)),
        (TypeError, "weight is float32; expected float16", lambda: cdd.Int8Linear(f)),
        (TypeError, "x is float32; expected float16", lambda: layer(f)),
        (TypeError, "dtype is 'int8'; expected float32 or float16", lambda: cdd.dequantize(q, dtype="int8")),
        (TypeError, "out is of type ndarray|out is of type Tensor", lambda: cdd.quantize(f, out=int8)),
        (ValueError, r"x is of shape \(40,\); expected two dimensions", lambda: cdd.quantize(f[0])),
        (ValueError, r"x is .*strides \(1, 40\); expected .*side by side", lambda: cdd.quantize(f.T)),
        (ValueError, r"x is .*strides \(40, 2\)", lambda: cdd.quantize(f[:, ::2])),
        (
            ValueError,
            "per is 'rows'; expected 'tensor' or 'row' or 'column'",
            lambda: cdd.quantize(f, per="rows"),
        ),
        (ValueError, "scheme is 'odd'; expected", lambda: cdd.quantize(f, scheme="odd")),
        (ValueError, "code is 'fp4'; expected", lambda: cdd.quantize_blocks(f, code="fp4")),
        (ValueError, "block is 5; expected 16, 32", lambda: cdd.quantize_blocks(f, block=5)),
        (
            ValueError,
            r"scale is of shape \(12,\); expected \(40,\)",
            lambda: cdd.quantize_with(f, q.scale, per="column"),
        ),
        (
            ValueError,
            r"w is of shape \(12, 39\); expected \(12, 40\)",
            lambda: cdd.int8_matmul(int8, int8[:, :39]),
        ),
        (ValueError, r"x is of shape \(12, 39\); expected \(12, 40\)", lambda: layer(half[:, :39])),
        (ValueError, r"out is of shape \(12, 40\); expected \(12, 12\)", lambda: layer(half, out=half)),
        (
            ValueError,
            "threshold is -1.*; expected 0 or more",
            lambda: cdd.Int8Linear(half, threshold=-1.0)(half),
        ),
        (ValueError, "out is in the memory of x; expected memory of its own", lambda: overlapping(library)),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()


def overlapping(library):
    base = library.empty((4, 8), "float32")
    if library.name == "torch":
        values = base.view(library.module.int8)
    else:
        values = base.view("int8")
    values = values[:, :8]
    cdd.quantize_with(base, library.empty(4, "float32"), out=values)


def test_a_stream_is_for_gpus():
    with pytest.raises(ValueError, match="stream is 3; expected None, for x is on the CPU"):
        cdd.quantize(np.ones((2, 2), np.float32), stream=3)


def test_a_gradient_is_refused():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    x = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(ValueError, match=r"x requires a gradient.*expected x.detach\(\)"):
        cdd.quantize(x)
    cdd.quantize(x.detach())


def test_tensors_in_two_places_are_refused(torch_cuda):
    x = torch_cuda.ones(2, 3, device="cuda")
    with pytest.raises(ValueError, match="scale is on the CPU; expected CUDA device 0, where x is"):
        cdd.quantize_with(x, torch_cuda.ones(2))


# --- Streams -----------------------------------------------------------------------------------------------------------


def slow_input(torch):
    """A tensor that gets its values late, on the current stream."""
    x = torch.zeros(64, 128, device="cuda")
    torch.cuda._sleep(200_000_000)
    return x.fill_(3)


def test_work_is_queued_on_the_current_stream(torch_cuda):
    stream = torch_cuda.cuda.Stream()
    with torch_cuda.cuda.stream(stream):
        q = cdd.quantize(slow_input(torch_cuda))
        late = not stream.query()
        back = cdd.dequantize(q)
        stream.synchronize()
    assert late, "the call waited for the GPU"
    assert (q.values == 127).all() and (back == 3).all()


@pytest.mark.parametrize("as_number", [False, True])
def test_a_given_stream_waits_for_the_tensors(torch_cuda, as_number):
    stream = torch_cuda.cuda.Stream()
    x = slow_input(torch_cuda)
    q = cdd.quantize(x, stream=stream.cuda_stream if as_number else stream)
    del x
    rubbish = [torch_cuda.full((64, 128), 9.0, device="cuda") for _ in range(20)]
    stream.synchronize()
    assert (q.values == 127).all() and len(rubbish) == 20
    torch_cuda.testing.assert_close(q.scale.cpu(), torch_cuda.full((64,), 3 / 127))


def test_a_cuda_graph_replays_the_calls(torch_cuda):
    w = torch_cuda.randn(96, 64, device="cuda").half()
    x = torch_cuda.randn(32, 64, device="cuda").half()
    layer = cdd.Int8Linear(w)
    layer(x)
    graph = torch_cuda.cuda.CUDAGraph()
    with torch_cuda.cuda.graph(graph):
        y = layer(x)
    x.copy_(torch_cuda.randn(32, 64, device="cuda"))
    graph.replay()
    torch_cuda.testing.assert_close(y, layer(x), rtol=0, atol=0)


def test_a_graph_has_memory_of_its_own(torch_cuda):
    """Calls with a larger array let the stream's memory grow, but not free that of a graph."""
    x = torch_cuda.randint(0, 100, (20_000,), dtype=torch_cuda.int32, device="cuda")
    graph = torch_cuda.cuda.CUDAGraph()
    with torch_cuda.cuda.graph(graph):
        sums = cdd.scan(x)
        ordered = cdd.sort(x)
    for size in (1000, 3_000_000):
        cdd.sort(cdd.scan(torch_cuda.ones(size, dtype=torch_cuda.int32, device="cuda")))
    for _ in range(3):
        x.copy_(torch_cuda.randint(0, 100, (20_000,), dtype=torch_cuda.int32))
        graph.replay()
        torch_cuda.testing.assert_close(sums, x.cumsum(0, dtype=torch_cuda.int32), rtol=0, atol=0)
        torch_cuda.testing.assert_close(ordered, x.sort().values, rtol=0, atol=0)


def test_nothing_waits_for_the_gpu(torch_cuda):
    def calls(x):
        return [
            cdd.softmax(x),
            cdd.topk(x, 3).values,
            cdd.bmm(x, x.T),
            cdd.bmm_min(x, x.T),
            cdd.bmm_masked(x, x.T, causal=True),
            cdd.scan(x[0]),
        ]

    stream = torch_cuda.cuda.Stream()
    with torch_cuda.cuda.stream(stream):
        calls(torch_cuda.ones(64, 128, device="cuda"))  # the first calls load kernels and allocate
        stream.synchronize()
        results = calls(slow_input(torch_cuda))
        late = not stream.query()
        stream.synchronize()
    assert late, "a call waited for the GPU"
    expected = [
        torch_cuda.full((64, 128), 1 / 128),
        torch_cuda.full((64, 3), 3.0),
        torch_cuda.full((64, 64), 1152.0),
        torch_cuda.full((64,), 1152.0),
        torch_cuda.full((64, 64), 1152.0).tril(),
        3.0 * torch_cuda.arange(1, 129),
    ]
    for got, wanted in zip(results, expected):
        torch_cuda.testing.assert_close(got.cpu(), wanted)
