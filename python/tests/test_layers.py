"""Sparse matrices and convolutional layers, against formulas in double, SciPy and PyTorch."""

import numpy as np
import pytest

import cuda_day_by_day as cdd

EPSILON = 2.0**-23


def random_csr(random, rows, cols, longest):
    """Rows of 0 to `longest` entries; one of all columns."""
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.zeros((rows, cols), np.float32)
    for row in range(rows):
        count = random.integers(0, min(longest, cols) + 1) if row != rows // 2 else cols
        dense[row, random.permutation(cols)[:count]] = random.standard_normal(count)
    return sparse.csr_matrix(dense), dense


@pytest.mark.parametrize("rows,cols,longest", [(1, 1, 1), (200, 300, 7), (33, 2000, 900)])
def test_a_sparse_matrix_times_a_vector(library, random, rows, cols, longest):
    csr, dense = random_csr(random, rows, cols, longest)
    x = random.standard_normal(cols).astype(np.float32)
    exact = dense.astype(np.float64) @ x
    allowed = EPSILON * (dense != 0).sum(1) * (np.abs(dense).astype(np.float64) @ np.abs(x)) + 1e-30
    matrix = cdd.SparseMatrix(csr)
    assert matrix.shape == (rows, cols) and matrix.nnz == csr.nnz
    out = library.empty(rows, "float32")
    for got in (
        matrix @ library.tensor(x),
        cdd.spmv(csr, library.tensor(x)),
        cdd.spmv(matrix, library.tensor(x), out=out),
    ):
        assert (np.abs(library.numpy(got) - exact) <= allowed).all()


def test_unsorted_columns_and_empty_matrices(library):
    sparse = pytest.importorskip("scipy.sparse")
    csr = sparse.csr_matrix(
        (np.array([1, 2, 3], np.float32), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3)
    )
    got = cdd.spmv(csr, library.tensor(np.array([1, 10, 100], np.float32)))
    np.testing.assert_array_equal(library.numpy(got), [102, 30])
    empty = sparse.csr_matrix((3, 4), dtype=np.float32)
    np.testing.assert_array_equal(library.numpy(cdd.spmv(empty, library.empty(4, "float32"))), np.zeros(3))


def test_a_sparse_tensor_of_pytorch(random):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    csr, dense = random_csr(random, 50, 60, 9)
    theirs = torch.sparse_csr_tensor(
        torch.from_numpy(csr.indptr.astype(np.int64)),
        torch.from_numpy(csr.indices.astype(np.int64)),
        torch.from_numpy(csr.data),
        size=(50, 60),
    )
    x = torch.from_numpy(random.standard_normal(60).astype(np.float32))
    torch.testing.assert_close(cdd.spmv(theirs, x), torch.from_numpy(dense) @ x, rtol=1e-4, atol=1e-5)


def convolution(x, w, padding, stride):
    """The values in double, and the sums of the products' magnitudes."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    w = w.astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwrs,kcrs->nkhw", windows, w), np.einsum(
        "nchwrs,kcrs->nkhw", np.abs(windows), np.abs(w)
    )


@pytest.mark.parametrize(
    "n,c,h,w,k,r,padding,stride",
    [
        (0, 1, 4, 4, 1, 3, 0, 1),
        (1, 1, 1, 1, 1, 1, 0, 1),
        (2, 3, 13, 10, 5, 3, 1, 1),
        (2, 4, 12, 15, 9, 5, 2, 2),
    ],
)
def test_convolutions(library, random, n, c, h, w, k, r, padding, stride):
    x = random.standard_normal((n, c, h, w)).astype(np.float32)
    filters = random.standard_normal((k, c, r, r)).astype(np.float32)
    expected, magnitude = convolution(x, filters, padding, stride)
    algorithms = ["auto", "direct"] + ["winograd_2x2", "winograd_4x4"] * (r == 3 and stride == 1 and n > 0)
    for algorithm in algorithms:
        got = library.numpy(
            cdd.conv2d(
                library.tensor(x),
                library.tensor(filters),
                padding=padding,
                stride=stride,
                algorithm=algorithm,
            )
        )
        assert got.dtype == np.float32 and got.shape == expected.shape
        # The transforms of F(4 x 4, 3 x 3) enlarge errors by about 100 (Lavin and Gray).
        roundings = c * r * r + 4 if "winograd" not in algorithm else 100 * (c + 20)
        assert (
            np.abs(got - expected) <= EPSILON * roundings * (magnitude + ("winograd" in algorithm) * 9)
        ).all()


def test_mistakes_are_named(library, random):
    x, w = library.empty((2, 3, 8, 9), "float32"), library.empty((4, 3, 3, 3), "float32")
    sparse = pytest.importorskip("scipy.sparse")
    matrix = cdd.SparseMatrix(sparse.csr_matrix(np.eye(3, dtype=np.float32)))
    v = library.empty(3, "float32")
    cases = [
        (ValueError, r"x is of shape \(3, 8, 9\); expected four dim", lambda: cdd.conv2d(x[0], w)),
        (ValueError, r"w is of shape \(4, 2, 3, 3\); expected 3 channels", lambda: cdd.conv2d(x, w[:, :2])),
        (
            TypeError,
            "w is int32; expected float32",
            lambda: cdd.conv2d(x, library.empty((4, 3, 3, 3), "int32")),
        ),
        (ValueError, "padding is -1; expected 0 or more", lambda: cdd.conv2d(x, w, padding=-1)),
        (ValueError, "stride is 0; expected 1 or more", lambda: cdd.conv2d(x, w, stride=0)),
        (
            ValueError,
            "winograd.*stride|algorithm is 'winograd_4x4'",
            lambda: cdd.conv2d(x, w, stride=2, algorithm="winograd_4x4"),
        ),
        (ValueError, "fft", lambda: cdd.conv2d(x, w, algorithm="fft")),
        (ValueError, r"x is .*strides", lambda: cdd.conv2d(x[:, :, :, ::2], w)),
        (ValueError, "filter", lambda: cdd.conv2d(x[:, :, :2], w)),
        (ValueError, r"x is of shape \(2,\); expected \(3,\)", lambda: matrix @ v[:2]),
        (TypeError, "matrix is of type list; expected a CSR", lambda: cdd.SparseMatrix([1])),
        (
            TypeError,
            "matrix is float64; expected float32",
            lambda: cdd.SparseMatrix(sparse.csr_matrix(np.eye(3))),
        ),
        (TypeError, "x is int32; expected float32", lambda: matrix @ library.empty(3, "int32")),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()


def test_convolutions_against_pytorch(random):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    x, w = (
        torch.from_numpy(random.standard_normal(s).astype(np.float32)) for s in ((2, 3, 17, 16), (6, 3, 3, 3))
    )
    got = cdd.conv2d(x, w, padding=1, stride=2)
    torch.testing.assert_close(
        got, torch.nn.functional.conv2d(x, w, padding=1, stride=2), rtol=1e-4, atol=1e-4
    )
