"""Functions of rows and arrays: softmax, prefix sums, sort."""

from typing import Any, Optional, Tuple, Union

from . import _extension
from ._tensors import Place, shape_of, type_name

Tensor = Any
Stream = Optional[Any]


def _softmax(kind: str, x: Tensor, out: Optional[Tensor], stream: Stream) -> Tensor:
    place = Place("x", x, stream)
    shape = shape_of("x", x)
    if not shape:
        raise ValueError(f"x is of shape {shape}; expected at least one dimension")
    if out is None:
        out = place.empty(shape, "float32")
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    workspace = place.scratch(_extension.softmax_workspace(rows, shape[-1])) if place.on_gpu else None
    _extension.softmax(kind, place.give("x", x), place.give("out", out), workspace, place.stream)
    return out


def softmax(x: Tensor, *, out: Optional[Tensor] = None, stream: Stream = None) -> Tensor:
    """exp(x) / sum(exp(x)) of each row, the last dimension of x: float32, of any size without
    overflow. As torch.softmax(x, dim=-1).

    x: float32, one dimension or more; rows may lie apart. A row with a NaN or +Inf, or with nothing
    but -Inf, becomes NaN. Kernels: day 21, chosen by the shape; it reads a row once as long as the
    registers of a block, a cluster or the whole GPU hold it. Source of the online sum: M. Milakov,
    N. Gimelshein, "Online normalizer calculation for softmax", 2018.
    """
    return _softmax("softmax", x, out, stream)


def log_softmax(x: Tensor, *, out: Optional[Tensor] = None, stream: Stream = None) -> Tensor:
    """x - max - log(sum(exp(x - max))) of each row. All else is as in softmax()."""
    return _softmax("log_softmax", x, out, stream)


def scan(
    x: Tensor, *, exclusive: bool = False, out: Optional[Tensor] = None, stream: Stream = None
) -> Tensor:
    """Prefix sums: result[i] = x[0] + ... + x[i]; if `exclusive`, without x[i].

    x: one dimension; float32, or int32 or uint32, whose sums wrap. Sums of floats are rounded in an
    order that may differ from call to call. Kernels: day 16, in one pass; D. Merrill, M. Garland,
    "Single-pass parallel prefix scan with decoupled look-back", 2016. It keeps memory of a 120th of
    x for each device and stream, and for each graph that it is captured in; the first call, and one
    with a larger x, allocate it.
    """
    place = Place("x", x, stream)
    if out is None:
        out = place.empty(shape_of("x", x), type_name(x.dtype))
    _extension.scan(place.give("x", x), place.give("out", out), exclusive, place.stream)
    return out


def sort(
    x: Tensor,
    values: Optional[Tensor] = None,
    *,
    descending: bool = False,
    out: Optional[Union[Tensor, Tuple[Tensor, Tensor]]] = None,
    stream: Stream = None,
) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """The keys x in order; with `values` a tuple of both, each value where its key is.

    x: one dimension, at most 2**31 keys; float32, float64, int32, uint32, int64 or uint64. values:
    int32, as many. The sort is stable: values of equal keys stay in their order, also if it is
    descending. Of floats NaN counts as the largest, whatever its sign, and -0 is before 0. Given the
    numbers from 0 on as values, it gives the indices that would sort x.

    Kernels: day 19, radix sort; A. Adinets, D. Merrill, "Onesweep: A faster least significant digit
    radix sort for GPUs", 2022. With values it needs 91 KB of shared memory per block: RuntimeError
    on compute capability 7.5. It keeps as much memory as x and values for each device and stream;
    the first call, and one with a larger x, allocate it.
    """
    place = Place("x", x, stream)
    keys_out, values_out = out if isinstance(out, tuple) else (out, None)
    if values is not None and out is not None and values_out is None:
        raise TypeError(
            f"out is of type {type(out).__name__}; expected a tuple of 2 tensors, as there are values"
        )
    if keys_out is None:
        keys_out = place.empty(shape_of("x", x), type_name(x.dtype))
    if values is not None and values_out is None:
        values_out = place.empty(shape_of("values", values), "int32")
    _extension.sort(
        place.give("x", x),
        None if values is None else place.give("values", values),
        place.give("out", keys_out),
        None if values is None else place.give("out.values", values_out),
        descending,
        place.stream,
    )
    return keys_out if values is None else (keys_out, values_out)
