"""Attention: fused, for decoding, and with its gradient."""

import importlib
from typing import Any, Optional

from . import _extension
from ._tensors import Place, shape_of, type_name

Tensor = Any
Stream = Optional[Any]


def scale_of(scale, dim):
    return 1 / max(dim, 1) ** 0.5 if scale is None else scale


def _four(name, x, what):
    shape = shape_of(name, x)
    if len(shape) != 4:
        raise ValueError(f"{name} is of shape {shape}; expected four dimensions: {what}")
    return shape


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    scale: Optional[float] = None,
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    """softmax(scale q k^T) v of each head of each batch, without storing the scores.

    q: (batch, heads, length_q, dim); k, v: (batch, heads_kv, length_k, dim), where heads_kv divides
    heads, and adjacent heads of q share one of k and v (grouped-query attention). All float32,
    float16 or bfloat16, dim at most 128. The elements of a row lie side by side, else any strides
    do, as those of x.view(batch, length, heads, dim).transpose(1, 2). scale: 1 / sqrt(dim) unless
    given.

    causal: row i sees the keys j <= i + length_k - length_q, so that the last row sees all of them.
    For equal lengths that is PyTorch's is_causal. A row that sees no key becomes zeros. A query, key
    or value of NaN makes the rows that see it NaN.

    Tensors of PyTorch that require a gradient get one (attention_with_gradient()). Kernels: day 26.
    Methods: T. Dao et al., "FlashAttention", 2022; T. Dao, "FlashAttention-2", 2023; M. Milakov, N.
    Gimelshein, "Online normalizer calculation for softmax", 2018; J. Ainslie et al., "GQA", 2023.
    """
    if out is None and _wants_gradient(q, k, v):
        return attention_with_gradient(q, k, v, causal=causal, scale=scale, stream=stream)
    place = Place("q", q, stream)
    shape = _four("q", q, "batch, heads, length and dim")
    if out is None:
        out = place.empty(shape, type_name(q.dtype))
    _extension.attention(
        place.give("q", q),
        place.give("k", k),
        place.give("v", v),
        place.give("out", out),
        scale_of(scale, shape[3]),
        causal,
        place.stream,
    )
    return out


def decode_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    lengths: Tensor,
    *,
    scale: Optional[float] = None,
    out: Optional[Tensor] = None,
    stream: Stream = None,
) -> Tensor:
    """Attention of each sequence's newest tokens to all tokens in its cache.

    q: (batch, heads, queries, dim), the newest tokens; k_cache, v_cache: (batch, heads_kv, capacity,
    dim), which have the keys and values of the newest tokens already; all float16 or bfloat16,
    contiguous and 16-byte aligned, dim 64 or 128, at most 16 queries for each head of k, that is
    heads / heads_kv * queries. lengths: (batch,), int32, the tokens in each cache; they are read on
    the device, so that a captured graph can be replayed while a cache grows. Query i of n sees the
    first length - (n - 1 - i) tokens; one that sees none becomes zeros.

    Kernels: day 29, with memory of its own for each device and stream; the first call of a shape
    allocates it. Methods: T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding", 2023; R. Sanovar
    et al., "Lean Attention", 2024.
    """
    place = Place("q", q, stream)
    shape = _four("q", q, "batch, heads, queries and dim")
    if out is None:
        out = place.empty(shape, type_name(q.dtype))
    _extension.decode_attention(
        place.give("q", q),
        place.give("k_cache", k_cache),
        place.give("v_cache", v_cache),
        place.give("lengths", lengths),
        place.give("out", out),
        scale_of(scale, shape[3]),
        place.stream,
    )
    return out


def _wants_gradient(*tensors):
    if not any(getattr(tensor, "requires_grad", False) for tensor in tensors):
        return False
    return importlib.import_module("torch").is_grad_enabled()


_function = None


def _attention_function():
    """The torch.autograd.Function, made when it is first wanted: PyTorch is not imported before."""
    global _function
    if _function is not None:
        return _function
    torch = importlib.import_module("torch")

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, causal, scale, stream):
            place = Place("q", q.detach(), stream)
            q, k, v = q.detach(), k.detach(), v.detach()
            batch, heads, length, dim = q.shape
            out = place.empty((batch, heads, length, dim), type_name(q.dtype))
            lse = place.empty((batch, heads, length), "float32")
            _extension.attention_with_lse(
                place.give("q", q),
                place.give("k", k),
                place.give("v", v),
                place.give("out", out),
                place.give("lse", lse),
                scale,
                causal,
                place.stream,
            )
            ctx.save_for_backward(q, k, v, out, lse)
            ctx.causal, ctx.scale, ctx.stream = causal, scale, stream
            return out

        @staticmethod
        def backward(ctx, d_out):
            q, k, v, out, lse = ctx.saved_tensors
            place = Place("q", q, ctx.stream)
            dq, dk, dv = (place.empty(tuple(x.shape), type_name(x.dtype)) for x in (q, k, v))
            # A gradient may be expanded, as that of a sum is: every element with the same address.
            _extension.attention_gradient(
                place.give("q", q),
                place.give("k", k),
                place.give("v", v),
                place.give("out", out.detach()),
                place.give("d_out", d_out.detach().contiguous()),
                place.give("lse", lse),
                place.give("dq", dq),
                place.give("dk", dk),
                place.give("dv", dv),
                ctx.scale,
                ctx.causal,
                torch.are_deterministic_algorithms_enabled(),
                place.stream,
            )
            return dq, dk, dv, None, None, None

    _function = Attention
    return Attention


def attention_with_gradient(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    scale: Optional[float] = None,
    stream: Stream = None,
) -> Tensor:
    """attention() of PyTorch's tensors, with a gradient with respect to q, k and v.

    As many heads of k as of q; for grouped queries give k.repeat_interleave(groups, dim=1), whose
    gradient PyTorch sums. The backward pass recomputes the scores tile by tile. It adds to dq in any
    order, or, under torch.use_deterministic_algorithms(True), always in the same one. float16 and
    bfloat16 need tensor cores and a dim that is a multiple of 8.

    Kernels: day 34. Its forward pass, which stores the sums that the gradient needs, is a plain
    kernel and slower than attention() without a gradient. Methods: T. Dao, "FlashAttention-2",
    2023; J. Shah et al., "FlashAttention-3", 2024.
    """
    torch = importlib.import_module("torch")
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor):
            raise TypeError(
                f"{name} is of type {type(x).__name__}; expected a tensor of PyTorch, which alone has gradients"
            )
    dim = _four("q", q, "batch, heads, length and dim")[3]
    return _attention_function().apply(q, k, v, causal, scale_of(scale, dim), stream)
