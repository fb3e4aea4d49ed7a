"""Batched products and what is fused with them, against NumPy in double and PyTorch."""

import numpy as np
import pytest

import cuda_day_by_day as cdd

EPSILON = 2.0**-23
METRICS = ["dot", "squared_l2", "differences", "cosine"]


def operand(library, values, transposed):
    """The same matrices; transposed: as the transpose of row-major ones, without a copy."""
    if not transposed:
        return library.tensor(values)
    tensor = library.tensor(np.ascontiguousarray(np.swapaxes(values, -1, -2)))
    return tensor.transpose(-1, -2) if library.name == "torch" else tensor.swapaxes(-1, -2)


def batch(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


def close(got, expected, magnitude, terms):
    """A sum of `terms` products in float, in any order."""
    assert got.dtype == np.float32 and got.shape == expected.shape
    assert (np.abs(got - expected) <= EPSILON * (terms + 4) * magnitude + 1e-30).all()


# Tiles are 64, 128 and 256 wide.
@pytest.mark.parametrize(
    "count,m,n,d", [(3, 0, 4, 5), (2, 3, 4, 0), (1, 1, 1, 1), (3, 33, 65, 17), (2, 130, 31, 70)]
)
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_products_in_all_layouts(library, random, layout, count, m, n, d):
    a, b = batch(random, count, m, d), batch(random, count, d, n)
    got = library.numpy(cdd.bmm(operand(library, a, layout[0] == "T"), operand(library, b, layout[1] == "T")))
    a, b = a.astype(np.float64), b.astype(np.float64)
    close(got, a @ b, np.abs(a) @ np.abs(b), d)


@pytest.mark.parametrize("count,m,n,d", [(2, 3, 4, 0), (1, 1, 1, 1), (3, 33, 65, 17), (2, 130, 31, 70)])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
def test_products_of_float16(library, random, layout, count, m, n, d):
    a, b = batch(random, count, m, d).astype(np.float16), batch(random, count, d, n).astype(np.float16)
    got = library.numpy(cdd.bmm(operand(library, a, layout[0] == "T"), operand(library, b, layout[1] == "T")))
    a, b = a.astype(np.float64), b.astype(np.float64)
    # Products are exact in float32. Tensor cores cut sums off instead of rounding them: twice the error.
    close(got, a @ b, 2 * np.abs(a) @ np.abs(b), d)


def test_a_matrix_serves_a_batch_and_out_is_added_to(library, random):
    a, b, c = batch(random, 3, 20, 30), batch(random, 30, 40), batch(random, 3, 20, 40)
    expected = a.astype(np.float64) @ b
    magnitude = np.abs(a).astype(np.float64) @ np.abs(b)
    close(library.numpy(cdd.bmm(library.tensor(a), library.tensor(b))), expected, magnitude, 30)
    close(library.numpy(cdd.bmm(library.tensor(a[1]), library.tensor(b))), expected[1], magnitude[1], 30)
    out = library.tensor(c)
    assert cdd.bmm(library.tensor(a), library.tensor(b), alpha=2, beta=-0.5, out=out) is out
    close(library.numpy(out), 2 * expected - 0.5 * c, 2 * magnitude + np.abs(c), 32)
    nan = library.tensor(np.full((3, 20, 40), np.nan, np.float32))
    close(library.numpy(cdd.bmm(library.tensor(a), library.tensor(b), out=nan)), expected, magnitude, 30)


def distances(a, b, metric):
    a, b = a.astype(np.float64), b.astype(np.float64)
    dot = a @ b
    of_a, of_b = (a * a).sum(-1)[..., :, None], (b * b).sum(-2)[..., None, :]
    if metric == "dot":
        return dot, np.abs(a) @ np.abs(b)
    if metric == "cosine":
        return 1 - dot / np.sqrt(of_a * of_b), 1 + np.abs(a) @ np.abs(b) / np.sqrt(of_a * of_b)
    return of_a + of_b - 2 * dot, of_a + of_b + 2 * np.abs(a) @ np.abs(b)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("count,m,n,d", [(1, 1, 1, 1), (2, 40, 40, 8), (3, 33, 150, 20), (1, 140, 65, 33)])
def test_reductions(library, random, metric, axis, count, m, n, d):
    a, b = batch(random, count, m, d), batch(random, count, d, n)
    x, y = operand(library, a, metric == "dot"), operand(library, b, metric == "cosine")
    exact, magnitude = distances(a, b, metric)
    largest = magnitude.max(axis)
    for name, reduce in (("min", np.min), ("max", np.max)):
        got = library.numpy(getattr(cdd, "bmm_" + name)(x, y, axis=axis, metric=metric))
        close(got, reduce(exact, axis), largest, 2 * d + 8)
        values, indices = getattr(cdd, "bmm_arg" + name)(x, y, axis=axis, metric=metric)
        np.testing.assert_array_equal(library.numpy(values), got)
        indices = library.numpy(indices)
        assert indices.dtype == np.int32
        # Rounding may make another element the extremum: its exact value is as near.
        there = np.take_along_axis(exact, np.expand_dims(indices, axis), axis).squeeze(axis)
        close(got, there, largest, 2 * d + 8)
    close(
        library.numpy(cdd.bmm_sum(x, y, axis=axis, metric=metric)),
        exact.sum(axis),
        magnitude.sum(axis),
        2 * d + n + m,
    )
    if metric == "dot":
        got = library.numpy(cdd.bmm_logsumexp(x, y, axis=axis))
        close(got, np.log(np.exp(exact).sum(axis)), largest + 10, 2 * d + n + m)


def test_of_equal_elements_the_first_counts(library):
    a, b = np.ones((1, 70, 3), np.float32), np.ones((1, 3, 300), np.float32)
    for function in (cdd.bmm_argmin, cdd.bmm_argmax):
        assert (library.numpy(function(library.tensor(a), library.tensor(b)).indices) == 0).all()
    best = cdd.bmm_topk(library.tensor(a), library.tensor(b), 5)
    np.testing.assert_array_equal(library.numpy(best.indices)[0], np.tile(np.arange(5), (70, 1)))


@pytest.mark.parametrize("metric,largest", [("dot", True), ("squared_l2", False), ("differences", False)])
@pytest.mark.parametrize("count,m,n,d,k", [(2, 5, 40, 7, 1), (2, 33, 300, 20, 10), (1, 3, 700, 5, 700)])
def test_the_k_best_of_products(library, random, metric, largest, count, m, n, d, k):
    a, points = batch(random, count, m, d), batch(random, count, n, d)
    b = np.swapaxes(points, 1, 2)
    exact, magnitude = distances(a, b, metric)
    values, indices = cdd.bmm_topk(
        library.tensor(a), operand(library, b, True), k, metric=metric, largest=largest
    )
    values, indices = library.numpy(values), library.numpy(indices)
    ordered = -np.sort(-exact) if largest else np.sort(exact)
    close(values, ordered[..., :k], np.repeat(magnitude.max(-1)[..., None], k, axis=-1), 2 * d + 8)
    close(
        values, np.take_along_axis(exact, indices, -1), np.take_along_axis(magnitude, indices, -1), 2 * d + 8
    )
    assert all(len(set(row)) == k for row in indices.reshape(-1, k))


@pytest.mark.parametrize(
    "shape,k", [((5,), 5), ((3, 100), 7), ((2, 3, 1100), 1024), ((0, 5), 2), ((70, 33), 1)], ids=str
)
@pytest.mark.parametrize("largest", [False, True])
def test_the_k_best_of_rows(library, random, largest, shape, k):
    x = random.integers(-30, 30, shape).astype(np.float32)  # many equal ones
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")[..., :k]
    best = cdd.topk(library.tensor(x), k, largest=largest)
    np.testing.assert_array_equal(library.numpy(best.indices), order)
    np.testing.assert_array_equal(library.numpy(best.values), np.take_along_axis(x, order, -1))


def test_the_k_best_put_nan_last(library):
    x = library.tensor(np.array([1, np.nan, 3, -np.inf], np.float32))
    for largest, order in ((True, [2, 0, 3, 1]), (False, [3, 0, 2, 1])):
        np.testing.assert_array_equal(library.numpy(cdd.topk(x, 4, largest=largest).indices), order)


@pytest.mark.parametrize("skip", ["tile", "element", "thread"])
@pytest.mark.parametrize("m,n,d", [(1, 1, 1), (150, 300, 17)])
def test_masks(library, random, skip, m, n, d):
    a, b = batch(random, 2, m, d), batch(random, 2, d, n)
    exact, magnitude = distances(a, b, "dot")
    row, column = np.arange(m)[:, None], np.arange(n)
    blocks = np.zeros((2, m, n), bool)
    blocks[0, : m // 2, n // 3 :] = True  # whole tiles of another kind
    blocks[1, ::7] = True
    cases = [
        ({"causal": True}, column <= row),
        ({"band": (3, 40)}, (row - 3 <= column) & (column <= row + 40)),
        ({"band": (None, -20)}, column <= row - 20),
        ({"mask": library.tensor(blocks)}, blocks),
        ({"mask": library.tensor(blocks[1].astype(np.uint8) * 2)}, blocks[1]),
        ({"mask": library.tensor(np.zeros((m, n), bool))}, np.zeros((m, n), bool)),
    ]
    for arguments, keep in cases:
        out = library.tensor(np.full((2, m, n), np.nan, np.float32))
        got = cdd.bmm_masked(
            library.tensor(a), library.tensor(b), skip=skip, alpha=0.5, fill=-7, out=out, **arguments
        )
        close(library.numpy(got), np.where(keep, exact / 2, -7), magnitude / 2, d)
        assert (library.numpy(got)[~np.broadcast_to(keep, got.shape)] == -7).all()


def test_kmeans_is_lloyds_method(library, random):
    middles = random.uniform(-50, 50, (6, 5))
    points = (middles[random.integers(0, 6, 400)] + random.standard_normal((400, 5))).astype(np.float32)
    start = points[random.permutation(400)[:7]].copy()
    given = library.tensor(start)
    for metric in ("squared_l2", "differences"):
        found = cdd.kmeans(library.tensor(points), given, metric=metric)
        np.testing.assert_array_equal(library.numpy(given), start)
        centres = start.astype(np.float64)
        inertia, before = [], None
        while True:
            d = ((points[:, None].astype(np.float64) - centres) ** 2).sum(-1)
            assignment = d.argmin(1)
            inertia.append(d.min(1).sum())
            if (assignment == before).all() if before is not None else False:
                break
            before = assignment
            for c in range(7):
                if (assignment == c).any():
                    centres[c] = points[assignment == c].astype(np.float64).mean(0).astype(np.float32)
        assert found.is_stable
        np.testing.assert_array_equal(library.numpy(found.assignment), assignment)
        np.testing.assert_allclose(library.numpy(found.centres), centres, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.inertia, inertia, rtol=1e-4)
    once = cdd.kmeans(library.tensor(points), given, most_iterations=1)
    assert not once.is_stable and len(once.inertia) == 1
    np.testing.assert_array_equal(library.numpy(once.centres), start)


def test_mistakes_are_named(library, random):
    a, b = library.tensor(batch(random, 2, 3, 4)), library.tensor(batch(random, 2, 4, 5))
    half = library.tensor(np.zeros((2, 3, 4), np.float16))
    whole = library.tensor(np.zeros((2, 3, 4), np.int32))
    mask = library.tensor(np.zeros((3, 6), bool))
    points = library.tensor(batch(random, 10, 3))
    nan = library.tensor(np.full((2, 3), np.nan, np.float32))
    cases = [
        (TypeError, "a is int32; expected float32, bfloat16 or float16", lambda: cdd.bmm(whole, b)),
        (TypeError, "b is float32; expected float16", lambda: cdd.bmm(half, b)),
        (TypeError, "b is float16; expected float32", lambda: cdd.bmm(a, half)),
        (ValueError, r"b is of shape \(2, 3, 4\); expected 4 rows", lambda: cdd.bmm(a, a)),
        (ValueError, r"b is of shape \(1, 4, 5\); expected 2 matrices", lambda: cdd.bmm(a, b[:1])),
        (ValueError, r"a is of shape \(4,\); expected two or three", lambda: cdd.bmm(a[0, 0], b)),
        (ValueError, r"a is .*strides \(12, 4, 2\).*contiguous", lambda: cdd.bmm(a[:, :, ::2], b[:, :2])),
        (ValueError, r"out is of shape \(2, 3, 4\); expected \(2, 3, 5\)", lambda: cdd.bmm(a, b, out=a)),
        (ValueError, "beta is 1, but out is None", lambda: cdd.bmm(a, b, beta=1)),
        (ValueError, "axis is 0; expected -1", lambda: cdd.bmm_min(a, b, axis=0)),
        (
            ValueError,
            "metric is 'l1'; expected 'dot' or 'squared_l2'",
            lambda: cdd.bmm_sum(a, b, metric="l1"),
        ),
        (ValueError, "b is of shape .*at least one element for a min", lambda: cdd.bmm_min(a, b[:, :, :0])),
        (ValueError, "k is 6; expected 1 to 5", lambda: cdd.bmm_topk(a, b, 6)),
        (ValueError, "k is 0; expected 1 to 4", lambda: cdd.topk(a, 0)),
        (ValueError, "k is -1; expected at least 1", lambda: cdd.topk(a, -1)),
        (TypeError, "out is of type .*; expected a tuple of 2", lambda: cdd.topk(a, 1, out=a)),
        (ValueError, "given are none of mask, causal and band", lambda: cdd.bmm_masked(a, b)),
        (ValueError, "given are mask and causal; expected", lambda: cdd.bmm_masked(a, b, mask, causal=True)),
        (ValueError, r"mask is of shape \(3, 6\); expected \(3, 5\)", lambda: cdd.bmm_masked(a, b, mask)),
        (ValueError, r"band is \(-2, 1\), which keeps nothing", lambda: cdd.bmm_masked(a, b, band=(-2, 1))),
        (
            ValueError,
            "skip is 'none'; expected 'tile' or",
            lambda: cdd.bmm_masked(a, b, causal=True, skip="none"),
        ),
        (
            TypeError,
            "mask is float32; expected uint8",
            lambda: cdd.bmm_masked(a, b, library.tensor(batch(random, 3, 5))),
        ),
        (
            ValueError,
            r"start is of shape \(2, 2\); expected \(k, 3\)",
            lambda: cdd.kmeans(points, points[:2, :2]),
        ),
        (ValueError, "start has a number of magnitude nan", lambda: cdd.kmeans(points, nan)),
        (
            ValueError,
            "metric is 'dot'; expected 'squared_l2'",
            lambda: cdd.kmeans(points, points[:2], metric="dot"),
        ),
        (ValueError, "most_iterations is 0", lambda: cdd.kmeans(points, points[:2], most_iterations=0)),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()


def test_against_pytorch(random):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    for device in ["cpu"] + ["cuda"] * (torch.cuda.is_available() and cdd.kernels_run_on == "gpu"):
        a = torch.from_numpy(batch(random, 3, 50, 24)).to(device)
        b = torch.from_numpy(batch(random, 3, 24, 70)).to(device)
        product = torch.bmm(a, b)
        torch.testing.assert_close(cdd.bmm(a, b), product, rtol=1e-4, atol=1e-4)
        for layout in ("NN", "NT", "TN", "TT"):
            # Of bfloat16 products are exact in float32: only the sums are rounded, 24 of them.
            x, y = a.bfloat16(), b.bfloat16()
            expected = torch.bmm(x.float().double(), y.float().double())
            allowed = 28 * EPSILON * torch.bmm(x.float().abs(), y.float().abs())
            x = x.transpose(1, 2).contiguous().transpose(1, 2) if layout[0] == "T" else x
            y = y.transpose(1, 2).contiguous().transpose(1, 2) if layout[1] == "T" else y
            got = cdd.bmm(x, y)
            assert got.dtype == torch.float32 and ((got - expected).abs() <= allowed).all()
        for axis in (-1, -2):
            best = cdd.bmm_argmin(a, b, axis=axis)
            values, indices = product.min(axis)
            torch.testing.assert_close(best.values, values, rtol=1e-4, atol=1e-4)
            assert (best.indices.long() == indices).all()
        best = cdd.bmm_topk(a, b, 5)
        torch.testing.assert_close(best.values, product.topk(5).values, rtol=1e-4, atol=1e-4)
        mask = torch.rand(50, 70, device=device) < 0.3
        torch.testing.assert_close(
            cdd.bmm_masked(a, b, mask, fill=-1.0), product.masked_fill(~mask, -1.0), rtol=1e-4, atol=1e-4
        )
