"""Softmax, prefix sums and sorts, against NumPy in double and PyTorch."""

import numpy as np
import pytest

import cuda_day_by_day as cdd

EPSILON = 2.0**-24  # of a rounding to float32


def softmax_in_double(x, log):
    x = x.astype(np.float64)
    shifted = x - x.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted - log_sum if log else np.exp(shifted - log_sum)


# A warp, a block, several blocks for a row; short ones in lanes and in shared memory.
@pytest.mark.parametrize(
    "shape", [(0, 5), (5, 0), (7,), (3, 1), (33, 31), (5, 128), (2, 3, 700), (3, 4097), (2, 33001)], ids=str
)
@pytest.mark.parametrize("log", [False, True])
def test_softmax_is_that_of_the_formula(library, random, log, shape):
    x = (random.standard_normal(shape) * 20).astype(np.float32)
    got = library.numpy((cdd.log_softmax if log else cdd.softmax)(library.tensor(x)))
    assert got.dtype == np.float32 and got.shape == shape
    if 0 in shape:
        return
    expected = softmax_in_double(x, log)
    # The exponent x - max is rounded once, and moves the exponential by as much; the exponential, the
    # sum of float (pairwise, at most a chain of 64 and 20 levels) and the quotient follow.
    spread = np.abs(x - x.max(axis=-1, keepdims=True)).astype(np.float64)
    bound = EPSILON * (spread + 100)
    allowed = bound if log else bound * expected + 2.0**-126
    assert (np.abs(got - expected) <= allowed + (EPSILON * np.abs(expected) if log else 0)).all()


def test_softmax_of_large_numbers_and_nan(library):
    x = np.array(
        [[1e38, 1e38, 0], [-1e38, 0, -np.inf], [np.nan, 1, 2], [np.inf, 0, 0], [-np.inf] * 3], np.float32
    )
    got = library.numpy(cdd.softmax(library.tensor(x)))
    np.testing.assert_array_equal(got[:2], [[0.5, 0.5, 0], [0, 1, 0]])
    assert np.isnan(got[2:]).all()


def test_softmax_of_rows_apart_and_in_place(library, random):
    x = random.standard_normal((9, 100)).astype(np.float32)
    expected = library.numpy(cdd.softmax(library.tensor(x)))
    apart, out = library.matrix_in_a_wider_one(x, 5), library.matrix_in_a_wider_one(np.zeros_like(x), 3)
    assert cdd.softmax(apart, out=out) is out
    np.testing.assert_allclose(library.numpy(out), expected, rtol=20 * EPSILON)
    # What is between the rows is as it was.
    base = library.empty((4, 8), "float32")
    cdd.softmax(library.tensor(np.zeros((4, 5), np.float32)), out=base[:, :5])
    np.testing.assert_array_equal(library.numpy(base)[:, 5:], np.full((4, 3), 77, np.float32))


SIZES = [0, 1, 31, 33, 2047, 2049, 20011]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_prefix_sums(library, random, dtype, exclusive, size):
    if dtype == "int32":
        x = random.integers(-(2**31), 2**31, size).astype(dtype)  # sums wrap
    else:
        x = random.standard_normal(size).astype(dtype)
    got = library.numpy(cdd.scan(library.tensor(x), exclusive=exclusive))
    wide = x.astype(np.int64 if dtype == "int32" else np.float64)
    sums = np.cumsum(wide)
    if exclusive:
        sums = np.concatenate([[0], sums])[:-1] if size else sums
    if dtype == "int32":
        np.testing.assert_array_equal(got, sums.astype(np.int32))
    else:
        # At most 20 sums in a thread, 10 levels in a block, and a sum for each tile before.
        roundings = 40 + size // 2048
        assert (np.abs(got - sums) <= roundings * EPSILON * np.cumsum(np.abs(wide))).all()


KEYS = ["float32", "int32", "int64", "float64"]


def keys_of(random, dtype, size):
    if dtype.startswith("float"):
        x = random.standard_normal(size).astype(dtype)
        x[::7] = 0  # equal ones
        x[1::11] = np.inf
        return x
    info = np.iinfo(dtype)
    x = random.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
    x[::7] = 5
    return x


@pytest.mark.parametrize("size", [0, 1, 33, 4099])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", KEYS)
def test_sort_is_stable_and_moves_values(library, random, dtype, descending, size):
    x = keys_of(random, dtype, size)
    order = np.argsort(-x if descending and dtype.startswith("float") else x, kind="stable")
    if descending and not dtype.startswith("float"):
        order = np.argsort(~x, kind="stable")
    got = cdd.sort(library.tensor(x), descending=descending)
    np.testing.assert_array_equal(library.numpy(got), x[order])
    numbers = np.arange(size, dtype=np.int32)
    keys, values = cdd.sort(library.tensor(x), library.tensor(numbers), descending=descending)
    np.testing.assert_array_equal(library.numpy(keys), x[order])
    np.testing.assert_array_equal(library.numpy(values), order)


def test_sort_puts_nan_last(library):
    x = np.array([np.nan, 1, -np.nan, -np.inf, 0, -0.0], np.float32)
    got = library.numpy(cdd.sort(library.tensor(x)))
    np.testing.assert_array_equal(got, np.array([-np.inf, -0.0, 0, 1, np.nan, np.nan], np.float32))
    assert np.signbit(got[1]) and not np.signbit(got[2])


def test_a_workspace_serves_smaller_and_larger_arrays(library, random):
    for size in (5000, 100, 30000, 29999):
        x = random.integers(0, 100, size).astype(np.int32)
        np.testing.assert_array_equal(library.numpy(cdd.scan(library.tensor(x))), np.cumsum(x))
        np.testing.assert_array_equal(library.numpy(cdd.sort(library.tensor(x))), np.sort(x))


def test_mistakes_are_named(library, random):
    x = library.tensor(random.standard_normal((3, 4)).astype(np.float32))
    half = library.tensor(np.zeros((3, 4), np.float16))
    cases = [
        (TypeError, "x is float16; expected float32", lambda: cdd.softmax(half)),
        (ValueError, r"x is .*strides \(1, 4\).*contiguous", lambda: cdd.softmax(x.T)),
        (ValueError, r"out is of shape \(2, 4\); expected \(3, 4\)", lambda: cdd.softmax(x, out=x[:2])),
        (ValueError, "out is in the memory of x", lambda: cdd.log_softmax(x, out=x)),
        (ValueError, r"x is of shape \(3, 4\); expected one dimension", lambda: cdd.scan(x)),
        (TypeError, "x is float16; expected float32, int32 or uint32", lambda: cdd.scan(half[0])),
        (ValueError, r"x is of shape \(3, 4\); expected one dimension", lambda: cdd.sort(x)),
        (TypeError, "values is float32; expected int32", lambda: cdd.sort(x[0], x[1])),
        (TypeError, "x is float16; expected float32, float64", lambda: cdd.sort(half[0])),
        (ValueError, r"x is a tensor with stride 2; expected .*side by side", lambda: cdd.scan(x[0, ::2])),
        (TypeError, "out is of type .*; expected a tuple", lambda: cdd.sort(x[0], x[0], out=x[1])),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()


def test_against_pytorch(random):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    x = torch.from_numpy(random.standard_normal((5, 3, 333)).astype(np.float32))
    torch.testing.assert_close(cdd.softmax(x), torch.softmax(x, dim=-1))
    torch.testing.assert_close(cdd.log_softmax(x), torch.log_softmax(x, dim=-1))
    flat = x.flatten()
    torch.testing.assert_close(cdd.scan(flat), flat.cumsum(0), rtol=1e-4, atol=1e-4)
    keys, indices = torch.sort(flat, descending=True, stable=True)
    got = cdd.sort(flat, torch.arange(flat.numel(), dtype=torch.int32), descending=True)
    torch.testing.assert_close(got[0], keys, rtol=0, atol=0)
    torch.testing.assert_close(got[1].long(), indices, rtol=0, atol=0)
