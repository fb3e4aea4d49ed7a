"""Products of sparse matrices with vectors, and convolutional layers."""

from typing import Any, Optional, Tuple

from . import _extension
from ._tensors import Place, shape_of

Tensor = Any
Stream = Optional[Any]


def _csr_arrays(matrix):
    """(shape, indptr, indices, data) on the CPU of a matrix of SciPy, CuPy or PyTorch."""
    import numpy as np

    if hasattr(matrix, "crow_indices"):  # torch.sparse_csr
        parts = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        indptr, indices, data = (part.detach().cpu().numpy() for part in parts)
    elif getattr(matrix, "format", None) == "csr":
        if not matrix.has_sorted_indices:
            matrix = matrix.sorted_indices()
        indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
        if hasattr(data, "get"):  # CuPy
            indptr, indices, data = indptr.get(), indices.get(), data.get()
    else:
        raise TypeError(
            f"matrix is of type {type(matrix).__name__}; expected a CSR matrix of SciPy or CuPy, or a sparse_csr tensor of PyTorch"
        )
    if len(matrix.shape) != 2:
        raise ValueError(f"matrix is of shape {tuple(matrix.shape)}; expected two dimensions")
    if data.dtype != np.float32:
        raise TypeError(f"matrix is {data.dtype}; expected float32")
    if len(indices) and (indices.min() < 0 or indices.max() >= matrix.shape[1]):
        raise ValueError(
            f"matrix has an entry in column {indices.max()}; expected 0 to {matrix.shape[1] - 1}"
        )
    return tuple(matrix.shape), indptr.astype(np.int64), indices.astype(np.int32), np.ascontiguousarray(data)


class SparseMatrix:
    """A sparse matrix, in the format that suits the lengths of its rows: made once, multiplied often.

    matrix: CSR of SciPy (scipy.sparse.csr_matrix or csr_array) or CuPy, or a sparse_csr tensor of
    PyTorch; float32. It is read once, here, by the CPU: a later change of it has no effect. The first
    product on a device and stream copies the matrix there. Formats and kernels: day 35.
    """

    def __init__(self, matrix: Any):
        (rows, cols), indptr, indices, data = _csr_arrays(matrix)
        self._matrix = _extension.SparseMatrix(rows, cols, indptr, indices, data)

    @property
    def shape(self) -> Tuple[int, int]:
        return self._matrix.shape()

    @property
    def nnz(self) -> int:
        return self._matrix.entries()

    def __matmul__(self, x: Tensor) -> Tensor:
        return spmv(self, x)


def spmv(matrix: Any, x: Tensor, *, out: Optional[Tensor] = None, stream: Stream = None) -> Tensor:
    """matrix @ x: a sparse matrix times a dense vector, float32.

    matrix: a SparseMatrix, or what one is made of, which then is converted and copied in every
    call. x: as many elements as the matrix has columns. An element of x that is NaN or Inf changes
    only the rows with an entry in its column. Kernels: day 35.
    """
    place = Place("x", x, stream)
    if not isinstance(matrix, SparseMatrix):
        matrix = SparseMatrix(matrix)
    shape_of("x", x)
    if out is None:
        out = place.empty((matrix.shape[0],), "float32")
    matrix._matrix.multiply(place.give("x", x), place.give("out", out), place.stream)
    return out


def conv2d(
    x: Tensor,
    w: Tensor,
    *,
    padding: int = 0,
    stride: int = 1,
    algorithm: str = "auto",
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    """The convolution of images with filters, as torch.nn.functional.conv2d(x, w).

    x: (N, C, H, W); w: (K, C, R, S); both float32 and contiguous. padding: rows and columns of zeros
    on each of the four sides; stride: the step of a filter along both. Returns (N, K, P, Q) with P = (H + 2 padding - R) // stride + 1.

    algorithm: "auto" is "implicit_gemm", whose error is that of a sum of C R S products.
    "winograd_2x2" and "winograd_4x4", for filters of 3 x 3 with a stride of 1, take fewer products and
    round more (A. Lavin, S. Gray, "Fast algorithms for convolutional neural networks", 2015). Also
    "direct", "direct_tiled", "unrolled" and "implicit_tiled". Kernels: day 28.
    """
    place = Place("x", x, stream)
    of_x, of_w = shape_of("x", x), shape_of("w", w)
    for name, shape, extents in (("x", of_x, "(N, C, H, W)"), ("w", of_w, "(K, C, R, S)")):
        if len(shape) != 4:
            raise ValueError(f"{name} is of shape {shape}; expected four dimensions: {extents}")
    given_x, given_w = place.give("x", x), place.give("w", w)
    if out is None:
        p, q = (max((a + 2 * padding - b) // max(stride, 1) + 1, 0) for a, b in zip(of_x[2:], of_w[2:]))
        out = place.empty((of_x[0], of_w[0], p, q), "float32")
    workspace = None
    if place.on_gpu:
        with place.device():
            size = _extension.conv2d_workspace(algorithm, given_x, given_w, padding, stride)
        # A capsule can be read once.
        given_x, given_w, workspace = place.give("x", x), place.give("w", w), place.scratch(size)
    _extension.conv2d(
        algorithm, given_x, given_w, padding, stride, place.give("out", out), workspace, place.stream
    )
    return out
