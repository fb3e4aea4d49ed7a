"""What is computed, against the formulas written down in NumPy."""

import numpy as np
import pytest

import cuda_day_by_day as cdd

SHAPES = [(0, 5), (5, 0), (1, 1), (3, 31), (33, 32), (32, 33), (7, 1023), (130, 129)]
TYPES = ["float32", "float16"]
METHODS = [(scheme, per) for scheme in ("symmetric", "asymmetric") for per in ("tensor", "row", "column")]
AXIS = {"tensor": None, "row": 1, "column": 0}
TINY = np.finfo(np.float32).tiny


def parameters(x, scheme, per):
    x = x.astype(np.float32)
    low = np.minimum(x.min(axis=AXIS[per], keepdims=True, initial=0), 0)
    high = np.maximum(x.max(axis=AXIS[per], keepdims=True, initial=0), 0)
    if scheme == "symmetric":
        scale = np.maximum(high, -low) / np.float32(127)
    else:
        scale = high / np.float32(255) + -low / np.float32(255)
    scale = np.where(scale < TINY, np.float32(0), scale)
    with np.errstate(all="ignore"):
        zero = np.where(scale > 0, np.rint(-low / scale) - 128, 0)
    return scale, zero.astype(np.int32) if scheme == "asymmetric" else None


def quantized(x, scale, zero):
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    exact = x.astype(np.float64) * inverse.astype(np.float64)
    lowest = -127 if zero is None else -128
    return np.clip(np.rint(exact) + (0 if zero is None else zero), lowest, 127).astype(np.int8)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("scheme,per", METHODS)
def test_eight_bits_are_those_of_the_formulas(library, random, scheme, per, shape, dtype):
    x = (random.standard_normal(shape) * 3 + 1).astype(dtype)
    q = cdd.quantize(library.tensor(x), scheme=scheme, per=per)
    scale, zero = parameters(x, scheme, per)
    assert library.numpy(q.values).dtype == np.int8
    np.testing.assert_array_equal(library.numpy(q.scale), scale.ravel())
    np.testing.assert_array_equal(library.numpy(q.values), quantized(x, scale, zero))
    assert (q.zero_point is None) == (scheme == "symmetric")
    if zero is not None:
        np.testing.assert_array_equal(library.numpy(q.zero_point), zero.ravel())

    back = library.numpy(cdd.dequantize(q, dtype=dtype))
    integers = quantized(x, scale, zero).astype(np.float32) - (0 if zero is None else zero.astype(np.float32))
    np.testing.assert_array_equal(back, (integers * scale).astype(dtype))


@pytest.mark.parametrize("scheme,per", METHODS)
def test_parameters_of_one_matrix_serve_for_another(library, random, scheme, per):
    like, x = random.standard_normal((2, 40, 50)).astype(np.float32)
    scale, zero = cdd.find_parameters(library.tensor(like), scheme=scheme, per=per)
    expected_scale, expected_zero = parameters(like, scheme, per)
    q = cdd.quantize_with(library.tensor(2 * x), scale, zero, per=per)  # twice as large: some saturate
    expected = quantized(2 * x, expected_scale, expected_zero)
    assert (np.abs(expected.astype(int)) >= 127).any()
    np.testing.assert_array_equal(library.numpy(q.values), expected)


def test_zeros_and_nan(library):
    x = np.array([[0, 0, 0], [1, np.nan, 2], [-1, 0.5, 1]], np.float32)
    q = cdd.quantize(library.tensor(x))
    np.testing.assert_array_equal(library.numpy(q.scale), np.array([0, np.nan, 1 / 127], np.float32))
    np.testing.assert_array_equal(library.numpy(q.values), [[0, 0, 0], [0, 0, 0], [-127, 64, 127]])
    assert np.isnan(library.numpy(cdd.dequantize(q))[1]).all()


def reference_blocks(x, code, block):
    """What the codes of a matrix stand for, and how far apart adjacent levels are at most."""
    rows, cols = x.shape
    padded = np.zeros((rows, -(-cols // block) * block), np.float32)
    padded[:, :cols] = x
    largest = np.abs(padded.reshape(rows, padded.shape[1] // block, block)).max(axis=2)
    return np.repeat(largest, block, axis=1)[:, :cols], largest


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(0, 64), (1, 1), (5, 63), (5, 64), (4, 65), (3, 1000)], ids=str)
@pytest.mark.parametrize("block", [16, 64, 256])
@pytest.mark.parametrize("code,steps,widest", [("int8", 127, 1 / 127), ("int4", 7, 1 / 7), ("nf4", 1, 0.304)])
def test_blocks_keep_what_their_levels_allow(library, random, code, steps, widest, block, shape, dtype):
    x = (random.standard_normal(shape) * 10 ** random.uniform(-2, 2, shape)).astype(dtype)
    q = cdd.quantize_blocks(library.tensor(x), code=code, block=block)
    codes, scales = library.numpy(q.codes), library.numpy(q.scales)
    assert codes.shape == (shape[0], shape[1] if code == "int8" else -(-shape[1] // 2))
    of_value, of_block = reference_blocks(x.astype(np.float32), code, block)
    np.testing.assert_array_equal(scales, of_block / np.float32(steps))
    back = library.numpy(cdd.dequantize_blocks(q, dtype=np.float32))
    assert (np.abs(back - x.astype(np.float32)) <= of_value * (widest / 2 + 1e-6)).all()
    if code == "int4":
        low, high = codes & 15, codes >> 4
        pairs = np.stack([low, high], axis=2).reshape(shape[0], 2 * codes.shape[1])[:, : shape[1]].astype(int)
        signed = np.where(pairs < 8, pairs, pairs - 16)
        scale_of_value = np.repeat(scales, block, axis=1)[:, : shape[1]]
        np.testing.assert_array_equal(back, signed.astype(np.float32) * scale_of_value)


@pytest.mark.parametrize(
    "m,n,k", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (31, 33, 32), (130, 70, 129), (5, 7, 1024)]
)
def test_int8_matmul_is_exact(library, random, m, n, k):
    a = random.integers(-128, 128, (m, k)).astype(np.int8)
    w = random.integers(-128, 128, (n, k)).astype(np.int8)
    c = library.numpy(cdd.int8_matmul(library.tensor(a), library.tensor(w)))
    assert c.dtype == np.int32
    np.testing.assert_array_equal(c, a.astype(np.int32) @ w.astype(np.int32).T)


def layer_in_double(x, w, threshold):
    """The layer and the size of its terms, in double, from the same 8-bit values."""
    outliers = ~(np.abs(x) < threshold).all(axis=0)
    kept = np.where(outliers, 0, x).astype(np.float32)
    x_scale, _ = parameters(kept, "symmetric", "row")
    w_scale, _ = parameters(w, "symmetric", "row")
    x8, w8 = quantized(kept, x_scale, None).astype(np.float64), quantized(w, w_scale, None).astype(np.float64)
    of_int8 = x8 @ w8.T * x_scale * w_scale.T
    xo, wo = x[:, outliers].astype(np.float64), w[:, outliers].astype(np.float64)
    magnitude = np.abs(of_int8) + np.abs(xo) @ np.abs(wo).T
    return of_int8 + xo @ wo.T, magnitude, outliers.sum()


@pytest.mark.parametrize(
    "tokens,outputs,inputs", [(0, 5, 6), (1, 1, 1), (20, 50, 70), (33, 31, 64), (5, 257, 300)]
)
@pytest.mark.parametrize("outliers", [0, 1, 5])
def test_int8_linear_is_the_layer_of_the_paper(library, random, tokens, outputs, inputs, outliers):
    x = random.standard_normal((tokens, inputs)).clip(-5, 5).astype(np.float16)
    w = random.standard_normal((outputs, inputs)).astype(np.float16)
    for column in random.permutation(inputs)[:outliers]:
        if tokens:
            x[random.integers(tokens), column] = 60
    y = library.numpy(cdd.Int8Linear(library.tensor(w))(library.tensor(x)))
    assert y.dtype == np.float16 and y.shape == (tokens, outputs)
    expected, magnitude, count = layer_in_double(x, w, 6.0)
    # Float sums of count + 2 terms, rounded to half once.
    in_float = 2.0**-23 * (2 + count) * magnitude
    assert (np.abs(y - expected) <= in_float + 2.0**-11 * (np.abs(expected) + in_float) + 2.0**-25).all()


def test_outliers_are_why_the_layer_is_mixed(library, random):
    x = random.standard_normal((32, 128)).clip(-5, 5).astype(np.float16)
    x[:, 3] = 60
    w = random.standard_normal((64, 128)).astype(np.float16)
    exact = x.astype(np.float64) @ w.astype(np.float64).T
    errors = []
    for threshold in (6.0, float("inf")):
        layer = cdd.Int8Linear(library.tensor(w), threshold=threshold)
        errors.append(np.abs(library.numpy(layer(library.tensor(x))) - exact).mean())
    assert errors[0] < errors[1] / 3


def test_against_pytorch(random):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    x = torch.from_numpy(random.standard_normal((40, 50)).astype(np.float32))
    scale, zero = cdd.find_parameters(x, scheme="asymmetric", per="tensor")
    q = cdd.quantize_with(x, scale, zero, per="tensor")
    theirs = torch.quantize_per_tensor(x, scale.item(), zero.item(), torch.qint8)
    # PyTorch rounds the product to float first: one step off where it then lies half way.
    assert (q.values.int() - theirs.int_repr().int()).abs().max() <= 1
    torch.testing.assert_close(cdd.dequantize(q), theirs.dequantize(), rtol=0, atol=1.01 * scale.item())

    a = torch.randint(-128, 128, (17, 96), dtype=torch.int8)
    w = torch.randint(-128, 128, (24, 96), dtype=torch.int8)
    # torch._int_mm() is newer than some PyTorch that works else.
    theirs = torch._int_mm(a, w.T.contiguous()) if hasattr(torch, "_int_mm") else a.int() @ w.int().T
    torch.testing.assert_close(cdd.int8_matmul(a, w), theirs, rtol=0, atol=0)
