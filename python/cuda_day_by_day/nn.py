"""Layers for PyTorch: this module imports it."""

from typing import Any, Optional, Tuple

import torch

from . import _extension
from ._attention import attention
from ._tensors import Place


class AttentionLayer(torch.nn.Module):
    """Multi-head attention with its projections, as torch.nn.MultiheadAttention(embed_dim,
    num_heads, bias, batch_first=True) without dropout: float32.

    The parameters have that class's names, so that load_state_dict() takes its weights, and
    from_torch() makes a layer with them.

    forward(query, key, value, key_padding_mask=None, is_causal=False) returns (out, None), as
    PyTorch's layer does with need_weights=False. query: (batch, queries, embed_dim); key, value:
    (batch, keys, embed_dim); key_padding_mask: (batch, keys), bool or uint8, not 0 where a key is
    not to be seen. is_causal: query i sees the keys j <= i. A query that sees no key gets the
    output's bias (PyTorch: NaN).

    Kernels: day 25, with day 26 inside where heads have at most 128 columns and no key is hidden.
    The layer keeps its weights on the device, transposed, and memory for the largest number of
    tokens so far. It copies the weights, by the CPU, when they have changed. Where a gradient is
    wanted, PyTorch projects and attention() attends, which then has one; no key can be hidden.
    Source of the method: A. Vaswani et al., "Attention is all you need", 2017.
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True, device: Any = None):
        super().__init__()
        self._layer = _extension.AttentionLayer(embed_dim, num_heads, bias)
        self._copied: Any = None
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.in_proj_weight = torch.nn.Parameter(torch.empty(3 * embed_dim, embed_dim, device=device))
        self.in_proj_bias = torch.nn.Parameter(torch.zeros(3 * embed_dim, device=device)) if bias else None
        self.out_proj = torch.nn.Linear(embed_dim, embed_dim, bias=bias, device=device)
        torch.nn.init.xavier_uniform_(self.in_proj_weight)
        if bias:
            torch.nn.init.zeros_(self.out_proj.bias)

    @classmethod
    def from_torch(cls, layer: torch.nn.MultiheadAttention) -> "AttentionLayer":
        """A layer with these weights, which are copied. ValueError for what it does not compute."""
        for name, value, expected in (
            ("batch_first", layer.batch_first, True),
            ("bias_k", layer.bias_k, None),
            ("add_zero_attn", layer.add_zero_attn, False),
            ("kdim", layer.kdim, layer.embed_dim),
            ("vdim", layer.vdim, layer.embed_dim),
        ):
            if value is not expected and value != expected:
                raise ValueError(f"layer.{name} is {value!r}; expected {expected!r}")
        if layer.training and layer.dropout > 0:
            raise ValueError(f"layer.dropout is {layer.dropout!r} in training; expected 0, or layer.eval()")
        made = cls(
            layer.embed_dim, layer.num_heads, layer.in_proj_bias is not None, layer.in_proj_weight.device
        )
        made.load_state_dict(layer.state_dict())
        return made

    def _copy_weights(self):
        weights = (self.in_proj_weight, self.out_proj.weight, self.in_proj_bias, self.out_proj.bias)
        state = tuple(None if w is None else (w.data_ptr(), w._version, str(w.device)) for w in weights)
        if state == self._copied:
            return
        self._layer.set_weights(*(None if w is None else w.detach().cpu().contiguous() for w in weights))
        self._copied = state

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: Optional[torch.Tensor] = None,
        is_causal: bool = False,
    ) -> Tuple[torch.Tensor, None]:
        place = Place("query", query, None)
        if query.dim() != 3 or query.shape[2] != self.embed_dim:
            raise ValueError(
                f"query is of shape {tuple(query.shape)}; expected three dimensions: batch, tokens and {self.embed_dim}"
            )
        if torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value, *self.parameters())):
            return self._forward_with_gradient(query, key, value, key_padding_mask, is_causal), None
        self._copy_weights()
        out = place.empty(tuple(query.shape), "float32")
        padding = None if key_padding_mask is None else place.as_bytes(key_padding_mask)
        self._layer.forward(
            place.give("query", query.detach()),
            place.give("key", key.detach()),
            place.give("value", value.detach()),
            None if padding is None else place.give("key_padding_mask", padding),
            place.give("out", out),
            is_causal,
            place.stream,
        )
        return out, None

    def _forward_with_gradient(self, query, key, value, key_padding_mask, is_causal):
        if key_padding_mask is not None:
            raise ValueError("key_padding_mask is a tensor; expected None where a gradient is wanted")
        if is_causal and query.shape[1] != key.shape[1]:
            raise ValueError(
                f"key is of shape {tuple(key.shape)}; expected {query.shape[1]} tokens where a causal gradient is wanted"
            )
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (
            torch.nn.functional.linear(x, w, b).unflatten(2, (self.num_heads, -1)).transpose(1, 2)
            for x, w, b in zip((query, key, value), weights, biases)
        )
        return self.out_proj(attention(q, k, v, causal=is_causal).transpose(1, 2).flatten(2))
