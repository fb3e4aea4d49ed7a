"""Matrices in 8 and 4 bits, and products of them: days 30 to 32.

Matrices of float32 or float16 whose rows have their elements side by side. The headers of those
days (quantization.hpp, blockwise.hpp, int8_matmul.hpp, llm_int8.hpp) define the results for zeros,
NaN and Inf, and name the sources of the methods.
"""

from typing import Any, NamedTuple, Optional

from . import _extension
from ._tensors import Place, matrix_shape as _shape, type_name as _type_name


class Quantized(NamedTuple):
    """A matrix in 8 bits: x is about (values - zero_point) * scale."""

    values: Any  # rows x cols, int8
    scale: Any  # float32: one, or one for each row or column
    zero_point: Optional[Any]  # int32, as many as scales; None if symmetric
    per: str  # "tensor", "row" or "column"


class QuantizedBlocks(NamedTuple):
    """A matrix in 8 or 4 bits with a scale for each `block` adjacent values of a row."""

    codes: Any  # uint8, a row of them for each row; of two 4-bit codes in a byte the first is the low half
    scales: Any  # float32, a row of them for each row
    code: str  # "int8", "int4" or "nf4"
    block: int
    columns: int  # of the matrix


def _float_name(dtype):
    if _type_name(dtype) not in ("float32", "float16"):
        raise TypeError(f"dtype is {dtype!r}; expected float32 or float16")
    return _type_name(dtype)


def _tuple(name, value, count):
    """The first `count` of a tuple."""
    if not isinstance(value, tuple) or len(value) < count:
        raise TypeError(f"{name} is of type {type(value).__name__}; expected a tuple of {count} tensors")
    return value[:count]


def _scheme(zero_point):
    return "symmetric" if zero_point is None else "asymmetric"


def _give(place, name, tensor):
    return None if tensor is None else place.give(name, tensor)


def _parameters(place, x, scheme, per, out):
    """Tensors for the scale and the zero point."""
    if out is not None:
        scale, zero_point = _tuple("out", (*out, None) if len(out) == 1 else out, 2)
        return scale, zero_point
    count = _extension.group_count(*_shape("x", x), per)
    zero_point = place.empty((count,), "int32") if scheme == "asymmetric" else None
    return place.empty((count,), "float32"), zero_point


def find_parameters(x, *, scheme="symmetric", per="row", out=None, stream=None):
    """(scale, zero_point) of a matrix, to quantise others like it with. `out`: those two tensors.

    scheme: "symmetric" (zero_point is None) or "asymmetric"; per: "tensor", "row" or "column".
    """
    place = Place("x", x, stream)
    scale, zero_point = _parameters(place, x, scheme, per, out)
    _extension.find_parameters(
        scheme,
        per,
        place.give("x", x),
        place.give("scale", scale),
        _give(place, "zero_point", zero_point),
        place.stream,
    )
    return scale, zero_point


def quantize(x, *, scheme="symmetric", per="row", out=None, stream=None) -> Quantized:
    """A matrix in 8 bits, with parameters found for it. `out`: a Quantized, or its first three fields.

    scheme: "symmetric" or "asymmetric"; per: "tensor", "row" or "column".
    """
    place = Place("x", x, stream)
    if out is None:
        values = place.empty(_shape("x", x), "int8")
        scale, zero_point = _parameters(place, x, scheme, per, None)
    else:
        values, scale, zero_point = _tuple("out", out, 3)
    _extension.quantize(
        scheme,
        per,
        place.give("x", x),
        place.give("out.values", values),
        place.give("out.scale", scale),
        _give(place, "out.zero_point", zero_point),
        place.stream,
    )
    return Quantized(values, scale, zero_point, per)


def quantize_with(x, scale, zero_point=None, *, per="row", out=None, stream=None) -> Quantized:
    """A matrix in 8 bits, with parameters that are given; symmetric without a zero_point. `out`: a
    tensor for the values.
    """
    place = Place("x", x, stream)
    values = place.empty(_shape("x", x), "int8") if out is None else out
    _extension.quantize_with(
        _scheme(zero_point),
        per,
        place.give("x", x),
        place.give("scale", scale),
        _give(place, "zero_point", zero_point),
        place.give("out", values),
        place.stream,
    )
    return Quantized(values, scale, zero_point, per)


def dequantize(q: Quantized, *, dtype="float32", out=None, stream=None):
    """The matrix that `q` stands for, as float32 or float16. With `out` its type counts."""
    values, scale, zero_point, per = _tuple("q", q, 4)
    place = Place("q.values", values, stream)
    if out is None:
        out = place.empty(_shape("q.values", values), _float_name(dtype))
    _extension.dequantize(
        _scheme(zero_point),
        per,
        place.give("q.values", values),
        place.give("q.scale", scale),
        _give(place, "q.zero_point", zero_point),
        place.give("out", out),
        place.stream,
    )
    return out


def quantize_blocks(x, *, code="nf4", block=64, out=None, stream=None) -> QuantizedBlocks:
    """A matrix in 8 or 4 bits. code: "int8", "int4" or "nf4"; block: 16, 32, 64, 128 or 256 values
    that share a scale.

    `out`: a QuantizedBlocks, or its first two fields.
    """
    place = Place("x", x, stream)
    rows, cols = _shape("x", x)
    if out is None:
        in_bytes, in_scales = _extension.block_columns(code, block, cols)
        codes, scales = place.empty((rows, in_bytes), "uint8"), place.empty((rows, in_scales), "float32")
    else:
        codes, scales = _tuple("out", out, 2)
    _extension.quantize_blocks(
        code,
        block,
        place.give("x", x),
        place.give("out.codes", codes),
        place.give("out.scales", scales),
        place.stream,
    )
    return QuantizedBlocks(codes, scales, code, block, cols)


def dequantize_blocks(q: QuantizedBlocks, *, dtype="float32", out=None, stream=None):
    """The matrix that `q` stands for, as float32 or float16. With `out` its type counts."""
    codes, scales, code, block, columns = _tuple("q", q, 5)
    place = Place("q.codes", codes, stream)
    if out is None:
        out = place.empty((_shape("q.codes", codes)[0], columns), _float_name(dtype))
    _extension.dequantize_blocks(
        code,
        block,
        place.give("q.codes", codes),
        place.give("q.scales", scales),
        place.give("out", out),
        place.stream,
    )
    return out


def int8_matmul(a, w, *, out=None, stream=None):
    """a @ w.T for int8 matrices a (m x k) and w (n x k), summed exactly in int32: m x n. k is at
    most 131071.
    """
    place = Place("a", a, stream)
    if out is None:
        out = place.empty((_shape("a", a)[0], _shape("w", w)[0]), "int32")
    _extension.int8_matmul(place.give("a", a), place.give("w", w), place.give("out", out), place.stream)
    return out


class Int8Linear:
    """The linear layer of LLM.int8(): about x @ weight.T, most of it multiplied in 8 bits.

    Columns of x in which some |x| reaches `threshold` are multiplied in float16. weight: outputs x
    inputs, float16; it is quantised here, once, and kept in both forms.
    """

    def __init__(self, weight, *, threshold=_extension.threshold, stream=None):
        place = Place("weight", weight, stream)
        outputs, inputs = _shape("weight", weight)
        if _type_name(weight.dtype) != "float16":
            raise TypeError(f"weight is {_type_name(weight.dtype)}; expected float16")
        self.weight = weight
        self.threshold = threshold
        # Tensor cores want rows that begin at multiples of 16 bytes.
        self._weight8 = place.empty((outputs, -(-inputs // 16) * 16), "int8")[:, :inputs]
        self._weight_scale = place.empty((outputs,), "float32")
        _extension.quantize(
            "symmetric",
            "row",
            place.give("weight", weight),
            place.give("values", self._weight8),
            place.give("scale", self._weight_scale),
            None,
            place.stream,
        )

    def __call__(self, x, *, out=None, stream=None):
        """x: tokens x inputs, float16. Returns tokens x outputs, float16."""
        place = Place("x", x, stream)
        tokens, outputs = _shape("x", x)[0], self.weight.shape[0]
        if out is None:
            out = place.empty((tokens, outputs), "float16")
        workspace = place.scratch(_extension.llm_int8_workspace(tokens, *self.weight.shape))
        _extension.llm_int8(
            place.give("x", x),
            place.give("weight", self.weight),
            place.give("weight8", self._weight8),
            place.give("weight_scale", self._weight_scale),
            place.give("out", out),
            workspace,
            self.threshold,
            place.stream,
        )
        return out
