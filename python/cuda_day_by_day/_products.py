"""Batched matrix products, and what is fused with them: reductions, the k best, masks, k-means.

`a` is m x d and `b` d x n, or a batch of such matrices, (count, m, d) and (count, d, n); a matrix
beside a batch serves all of its products. Each may be row-major or the transpose of a row-major
matrix, such as x.T or x.transpose(1, 2): all four layouts are read as they are.
"""

import importlib
from typing import Any, NamedTuple, Optional, Tuple

from . import _extension
from ._tensors import Place, matrix_shape, shape_of

Tensor = Any
Stream = Optional[Any]

most_best: int = _extension.most_best
"""The largest k of topk() and bmm_topk()."""


class Best(NamedTuple):
    """Values and where they are: of an extremum, or of the k best."""

    values: Tensor  # float32
    indices: Tensor  # int32


class Clusters(NamedTuple):
    """The result of kmeans()."""

    centres: Tensor  # k x d, float32
    assignment: Tensor  # of n points, int32: the nearest of these centres, the first of equally near ones
    inertia: Tuple[float, ...]  # the sum of squared distances to the own centre, of each iteration
    is_stable: bool  # no point changed its centre in the last iteration


def _product_shape(a, b):
    """(leading dimensions, m, n, d): checked in full by the extension."""
    of_a, of_b = shape_of("a", a), shape_of("b", b)
    for name, shape in (("a", of_a), ("b", of_b)):
        if len(shape) not in (2, 3):
            raise ValueError(f"{name} is of shape {shape}; expected two or three dimensions")
    leading = of_a[:-2] or of_b[:-2]
    return leading, of_a[-2], of_b[-1], of_a[-1]


def _count(leading):
    return leading[0] if leading else 1


def bmm(
    a: Tensor,
    b: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    """alpha a @ b + beta out, of one product or a batch of them: float32, summed in float32.

    a, b: both float32, both bfloat16 or both float16; tensor cores multiply the 16-bit types. With
    beta, `out` is read, too, and must be given. Kernels: day 45, with the tile that suits the
    shape; where both are float16 and neither is transposed, those of days 40 and 41, with a launch
    for each product.
    """
    place = Place("a", a, stream)
    if out is None:
        if beta != 0:
            raise ValueError(f"beta is {beta!r}, but out is None; expected 0, or an out to add to")
        leading, m, n, _ = _product_shape(a, b)
        out = place.empty((*leading, m, n), "float32")
    _extension.bmm(place.give("a", a), place.give("b", b), place.give("out", out), alpha, beta, place.stream)
    return out


def _is_along_rows(axis):
    if axis not in (-1, -2):
        raise ValueError(
            f"axis is {axis!r}; expected -1, over the columns of each product, or -2, over its rows"
        )
    return axis == -1


def _reduce(function, reduction, a, b, axis, metric, with_indices, out, stream):
    place = Place("a", a, stream)
    along_rows = _is_along_rows(axis)
    leading, m, n, d = _product_shape(a, b)
    values, indices = out if isinstance(out, tuple) else (out, None)
    shape = (*leading, m if along_rows else n)
    if values is None:
        values = place.empty(shape, "float32")
    if with_indices and indices is None:
        indices = place.empty(shape, "int32")
    workspace = None
    if place.on_gpu:
        with place.device():
            size = _extension.bmm_reduce_workspace(reduction, along_rows, metric, m, n, d, _count(leading))
        workspace = place.scratch(size)
    _extension.bmm_reduce(
        function,
        reduction,
        along_rows,
        metric,
        place.give("a", a),
        place.give("b", b),
        place.give("out", values),
        place.give("out.indices", indices) if with_indices else None,
        workspace,
        place.stream,
    )
    return Best(values, indices) if with_indices else values


_REDUCTION = """{what} of each {metric_note}row of a @ b, or of each column with axis=-2, without storing the product.

    metric: "dot", the elements of the product; or of row i of a and column j of b the distance
    "squared_l2" (|x|^2 + |y|^2 - 2 x.y), "differences" (the sum of (x - y)^2: slower, and accurate
    for vectors much closer to each other than to the origin) or "cosine". a, b: float32. With the
    points as rows of another matrix, b is its transpose: points.T.

    Returns float32, (count, m) or (m,), with axis=-2 n in place of m{more}
    Kernels: day 46, on tensor cores in float32 accuracy where the GPU has wgmma.
    """
_EXTREMUM = """. Of equal elements the first
    counts; NaN is before all numbers, as in PyTorch. `out`: {out}."""


def bmm_min(
    a: Tensor,
    b: Tensor,
    *,
    axis: int = -1,
    metric: str = "dot",
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    return _reduce("bmm_min", "min", a, b, axis, metric, False, out, stream)


def bmm_max(
    a: Tensor,
    b: Tensor,
    *,
    axis: int = -1,
    metric: str = "dot",
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    return _reduce("bmm_max", "max", a, b, axis, metric, False, out, stream)


def bmm_argmin(
    a: Tensor,
    b: Tensor,
    *,
    axis: int = -1,
    metric: str = "dot",
    out: Optional[Tuple[Tensor, Tensor]] = None,
    stream: Stream = None,
) -> Best:
    return _reduce("bmm_argmin", "min", a, b, axis, metric, True, out, stream)


def bmm_argmax(
    a: Tensor,
    b: Tensor,
    *,
    axis: int = -1,
    metric: str = "dot",
    out: Optional[Tuple[Tensor, Tensor]] = None,
    stream: Stream = None,
) -> Best:
    return _reduce("bmm_argmax", "max", a, b, axis, metric, True, out, stream)


def bmm_sum(
    a: Tensor,
    b: Tensor,
    *,
    axis: int = -1,
    metric: str = "dot",
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    return _reduce("bmm_sum", "sum", a, b, axis, metric, False, out, stream)


def bmm_logsumexp(
    a: Tensor,
    b: Tensor,
    *,
    axis: int = -1,
    metric: str = "dot",
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    return _reduce("bmm_logsumexp", "logsumexp", a, b, axis, metric, False, out, stream)


def _describe(function, what, more):
    function.__doc__ = _REDUCTION.format(what=what, metric_note="", more=more)


_describe(bmm_min, "The minimum", _EXTREMUM.format(out="a tensor for them"))
_describe(bmm_max, "The maximum", _EXTREMUM.format(out="a tensor for them"))
_describe(
    bmm_argmin,
    "The minimum and its index",
    " (a Best: and int32)" + _EXTREMUM.format(out="a tuple of two tensors"),
)
_describe(
    bmm_argmax,
    "The maximum and its index",
    " (a Best: and int32)" + _EXTREMUM.format(out="a tuple of two tensors"),
)
_describe(bmm_sum, "The sum", ".")
_describe(bmm_logsumexp, "The logarithm of the sum of exponentials, which does not overflow,", ".")


def bmm_topk(
    a: Tensor,
    b: Tensor,
    k: int,
    *,
    metric: str = "dot",
    largest: bool = True,
    out: Optional[Tuple[Tensor, Tensor]] = None,
    stream: Stream = None,
) -> Best:
    """The k best elements of each row of a @ b, the best first, without storing the product.

    metric: as for bmm_min(). With metric="squared_l2", largest=False and b = points.T these are the
    k nearest points of each row of a. k: 1 to 1,024. Of equal elements the first comes first; NaN
    comes after all numbers in both orders (in torch.topk it is the largest).

    Returns Best(values, indices) of (count, m, k) or (m, k): float32 and int32. `out`: those two.
    Kernels: day 48.
    """
    place = Place("a", a, stream)
    leading, m, n, d = _product_shape(a, b)
    values, indices = _best_tensors(place, (*leading, m, k), out)
    workspace = None
    if place.on_gpu:
        with place.device():
            size = _extension.bmm_topk_workspace(m, n, d, _count(leading), k, metric, True)
        workspace = place.scratch(size)
    _extension.bmm_topk(
        place.give("a", a),
        place.give("b", b),
        k,
        metric,
        largest,
        place.give("out.values", values),
        place.give("out.indices", indices),
        workspace,
        place.stream,
    )
    return Best(values, indices)


def _best_tensors(place, shape, out):
    if out is not None:
        if not isinstance(out, tuple) or len(out) != 2:
            raise TypeError(f"out is of type {type(out).__name__}; expected a tuple of 2 tensors")
        return out
    if min(shape, default=0) < 0:
        raise ValueError(f"k is {shape[-1]}; expected at least 1")
    return place.empty(shape, "float32"), place.empty(shape, "int32")


def topk(
    x: Tensor,
    k: int,
    *,
    largest: bool = True,
    out: Optional[Tuple[Tensor, Tensor]] = None,
    stream: Stream = None,
) -> Best:
    """The k best elements of each row, the last dimension of x: float32, the best first.

    k: 1 to 1,024. Of equal elements the first comes first; NaN comes after all numbers in both
    orders (in torch.topk it is the largest). For more of one row, sort() it.

    Returns Best(values, indices), float32 and int32. `out`: those two. Kernels: day 48's selection,
    of a product of each row with 1.
    """
    place = Place("x", x, stream)
    shape = shape_of("x", x)
    if not shape:
        raise ValueError(f"x is of shape {shape}; expected at least one dimension")
    values, indices = _best_tensors(place, (*shape[:-1], k), out)
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    workspace = None
    if place.on_gpu:
        with place.device():
            size = _extension.bmm_topk_workspace(1, shape[-1], 1, rows, k, "dot", False)
        workspace = place.scratch(size)
    _extension.topk(
        place.give("x", x),
        k,
        largest,
        place.give("out.values", values),
        place.give("out.indices", indices),
        workspace,
        place.stream,
    )
    return Best(values, indices)


def bmm_masked(
    a: Tensor,
    b: Tensor,
    mask: Optional[Tensor] = None,
    *,
    causal: bool = False,
    band: Optional[Tuple[Optional[int], Optional[int]]] = None,
    skip: str = "tile",
    alpha: float = 1.0,
    fill: float = 0.0,
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    """alpha a @ b where the mask keeps an element, `fill` elsewhere: float32.

    One of these says which elements are kept:
    mask: bool or uint8, (m, n) or (count, m, n): where it is not 0;
    causal=True: column <= row, counted from the first of both;
    band=(below, above): row - below <= column <= row + above; None for one of them: without end.

    skip, what is not computed: "tile", a block's tiles and a warp's part of them without a kept
    element, which are found first; "element", all is multiplied and each element tested at the end;
    "thread", a thread for each element, which does nothing for one that is not kept. All give the
    same. Kernels: day 47.
    """
    place = Place("a", a, stream)
    given = [
        name
        for name, is_given in (("mask", mask is not None), ("causal", causal), ("band", band is not None))
        if is_given
    ]
    if len(given) != 1:
        raise ValueError(
            f"given are {' and '.join(given) or 'none of mask, causal and band'}; expected exactly one of them"
        )
    below, above = (None, 0) if causal else band or (None, None)
    if band is not None and -(below if below is not None else 2**31 - 1) > (
        above if above is not None else 2**31 - 1
    ):
        raise ValueError(f"band is {band!r}, which keeps nothing; expected -below <= above")
    leading, m, n, _ = _product_shape(a, b)
    if mask is not None:
        shape_of("mask", mask)
        mask = place.as_bytes(mask)
    if out is None:
        out = place.empty((*leading, m, n), "float32")
    given_mask = None if mask is None else place.give("mask", mask)
    workspace = None
    if place.on_gpu:
        with place.device():
            size = _extension.bmm_masked_workspace(skip, None if mask is None else place.give("mask", mask))
        workspace = place.scratch(size)
    _extension.bmm_masked(
        place.give("a", a),
        place.give("b", b),
        given_mask,
        below,
        above,
        skip,
        alpha,
        fill,
        place.give("out", out),
        workspace,
        place.stream,
    )
    return out


def kmeans(
    points: Tensor,
    start: Tensor,
    *,
    most_iterations: int = 100,
    metric: str = "squared_l2",
    stream: Stream = None,
) -> Clusters:
    """k centres such that the sum of squared distances of the points to the nearest ones is small.

    points: n x d; start: k x d, the first centres; both float32, contiguous and finite. metric:
    "squared_l2", or "differences" for points much closer to each other than to the origin. A centre
    without points stays where it is. Runs until no point changes its centre, or `most_iterations`.
    Everything but the progress of an iteration stays on the device; reading that waits for it.

    Kernels: day 46. Method: S. Lloyd, "Least squares quantization in PCM", IEEE Trans. Inf. Theory
    28, 1982.
    """
    place = Place("points", points, stream)
    n, d = matrix_shape("points", points)
    k, of_start = matrix_shape("start", start)
    if of_start != d:
        raise ValueError(
            f"start is of shape {(k, of_start)}; expected (k, {d}), as the points have {d} numbers"
        )
    if k < 1 or d < 1:
        raise ValueError(f"start is of shape {(k, d)}; expected at least one centre of at least one number")
    if most_iterations < 1:
        raise ValueError(f"most_iterations is {most_iterations!r}; expected at least 1")
    # Squared distances of up to 4 d largest^2 must be finite.
    most = (3.4e38 / (4 * d)) ** 0.5
    largest = 0.0
    for name, vectors in (("start", start), ("points", points)):
        place.give(name, vectors)  # refuses a tensor that requires a gradient
        largest = float(abs(vectors).max()) if len(vectors) else 0.0
        if not largest <= most:
            raise ValueError(
                f"{name} has a number of magnitude {largest}; expected at most {most:.3g}, so that squared distances are finite"
            )
    before, assignment = place.full((n,), "int32", -1), place.empty((n,), "int32")
    squared_distances = place.empty((n,), "float32")
    progress = place.empty((2 * _extension.kmeans_progress_parts(n),), "float64")
    centres, moved = start, place.empty((k, d), "float32")
    size = 0
    if place.on_gpu:
        with place.device():
            size = _extension.kmeans_workspace(n, k, d, metric)
    inertia = []
    while True:
        _extension.kmeans_step(
            place.give("points", points),
            place.give("start", centres),
            largest,
            metric,
            place.give("before", before),
            place.give("assignment", assignment),
            place.give("squared_distances", squared_distances),
            place.give("progress", progress),
            place.give("moved", moved),
            place.scratch(size) if place.on_gpu else None,
            place.stream,
        )
        parts = place.to_numpy(progress)
        inertia.append(float(parts[0::2].sum()))
        is_stable = not parts[1::2].view("int64").any()
        if is_stable or len(inertia) == most_iterations:
            break
        # `start` is the caller's: it is not written.
        centres, moved = moved, place.empty((k, d), "float32") if centres is start else centres
        before, assignment = assignment, before
    return Clusters(
        place.copy(centres) if centres is start else centres, assignment, tuple(inertia), is_stable
    )
