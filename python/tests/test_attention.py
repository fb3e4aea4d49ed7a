"""Attention, its gradient and its layer, against formulas in double and PyTorch."""

import numpy as np
import pytest

import cuda_day_by_day as cdd


def in_double(q, k, v, scale, causal):
    """out, and the sum of the magnitudes behind each element."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    scores = scale * q @ np.swapaxes(k, 2, 3)
    if causal:
        hidden = np.arange(k.shape[2]) > np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
        scores[..., hidden] = -np.inf
    most = scores.max(-1, keepdims=True, initial=-np.inf)
    p = np.exp(scores - np.where(np.isfinite(most), most, 0))
    total = p.sum(-1, keepdims=True)
    p = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    return p @ v, p @ np.abs(v)


def problem(random, heads, heads_kv, length_q, length_k, dim, dtype=np.float32):
    q = random.standard_normal((2, heads, length_q, dim)).astype(dtype)
    k, v = (random.standard_normal((2, heads_kv, length_k, dim)).astype(dtype) for _ in range(2))
    return q, k, v


# The relative error of a score moves its weight by as much: |q k| is about dim, so 2^-24 dim 8. Of
# 16-bit types the weights are rounded, and the result.
TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2}


@pytest.mark.parametrize(
    "heads,heads_kv,length_q,length_k,dim",
    [(2, 2, 0, 5, 8), (1, 1, 1, 1, 1), (4, 2, 33, 65, 20), (4, 1, 70, 40, 64), (1, 1, 5, 130, 128)],
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_attention_is_that_of_the_formula(
    library, random, dtype, causal, heads, heads_kv, length_q, length_k, dim
):
    q, k, v = problem(random, heads, heads_kv, length_q, length_k, dim, dtype)
    got = library.numpy(cdd.attention(*(library.tensor(x) for x in (q, k, v)), causal=causal))
    assert got.dtype == dtype and got.shape == q.shape
    expected, magnitude = in_double(q, k, v, dim**-0.5, causal)
    assert (np.abs(got - expected) <= TOLERANCE[dtype] * (magnitude + 1e-3)).all()


def test_heads_may_lie_side_by_side(library, random):
    q, k, v = problem(random, 3, 3, 20, 20, 16)
    expected = library.numpy(cdd.attention(*(library.tensor(x) for x in (q, k, v)), scale=0.5))
    packed = library.tensor(
        np.concatenate([np.swapaxes(x, 1, 2).reshape(2, 20, 48) for x in (q, k, v)], axis=2)
    )
    parts = [packed[:, :, i * 48 : (i + 1) * 48].reshape(2, 20, 3, 16) for i in range(3)]
    if library.name == "torch":
        parts = [packed[:, :, i * 48 : (i + 1) * 48].view(2, 20, 3, 16).transpose(1, 2) for i in range(3)]
    else:
        parts = [part.swapaxes(1, 2) for part in parts]
    np.testing.assert_allclose(
        library.numpy(cdd.attention(*parts, scale=0.5)), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("heads,heads_kv,queries,dim", [(4, 4, 1, 64), (8, 2, 2, 128)])
def test_decoding_sees_what_is_in_the_cache(library, random, heads, heads_kv, queries, dim):
    q, k, v = problem(random, heads, heads_kv, queries, 50, dim, np.float16)
    lengths = np.array([37, 1], np.int32)
    k[0, :, 37:] = v[1, :, 1:] = np.nan  # has no effect
    got = library.numpy(cdd.decode_attention(*(library.tensor(x) for x in (q, k, v, lengths))))
    for i, length in enumerate(lengths):
        one = q[i : i + 1], k[i : i + 1, :, :length], v[i : i + 1, :, :length]
        expected, magnitude = in_double(*one, dim**-0.5, True)
        assert (np.abs(got[i] - expected[0]) <= TOLERANCE["float16"] * (magnitude[0] + 1e-3)).all()


def test_mistakes_are_named(library, random):
    q, k, v = (library.tensor(x) for x in problem(random, 4, 2, 6, 9, 8))
    wide = library.tensor(np.zeros((1, 1, 2, 130), np.float32))
    half = [library.tensor(x) for x in problem(random, 2, 2, 1, 9, 64, np.float16)]
    lengths = library.tensor(np.array([9, 9], np.int32))
    double = library.tensor(np.zeros((2, 4, 6, 8)))
    cases = [
        (
            TypeError,
            "q is float64; expected float32, float16 or bfloat16",
            lambda: cdd.attention(double, k, v),
        ),
        (TypeError, "k is float16; expected float32", lambda: cdd.attention(q, half[1], v)),
        (ValueError, r"q is of shape \(4, 6, 8\); expected four dim", lambda: cdd.attention(q[0], k, v)),
        (
            ValueError,
            r"k is of shape .*expected batch 2, a divisor of 4 heads, and dim 8",
            lambda: cdd.attention(q, k[:, :, :, :7], v[:, :, :, :7]),
        ),
        (
            ValueError,
            r"v is of shape \(2, 2, 8, 8\); expected \(2, 2, 9, 8\)",
            lambda: cdd.attention(q, k, v[:, :, :8]),
        ),
        (
            ValueError,
            r"q is of shape .*; expected at most 128 elements",
            lambda: cdd.attention(wide, wide, wide),
        ),
        (
            ValueError,
            "scale is 0.*; expected a finite number above 0",
            lambda: cdd.attention(q, k, v, scale=0),
        ),
        (
            ValueError,
            r"out is of shape \(2, 2, 9, 8\); expected \(2, 4, 6, 8\)",
            lambda: cdd.attention(q, k, v, out=k),
        ),
        (
            ValueError,
            r"q is .*strides .*contiguous",
            lambda: cdd.attention(q[:, :, :, ::2], k[:, :, :, ::2], v[:, :, :, ::2]),
        ),
        (
            TypeError,
            "q is float32; expected float16 or bfloat16",
            lambda: cdd.decode_attention(q, k, v, lengths),
        ),
        (
            TypeError,
            "lengths is float16; expected int32",
            lambda: cdd.decode_attention(*half, half[0][:, 0, 0, 0]),
        ),
        (
            ValueError,
            "q is of shape .*64 or 128 elements",
            lambda: cdd.decode_attention(*(x[:, :, :, :32] for x in half), lengths),
        ),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()


# --- PyTorch -----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["cpu", "cuda"])
def torch_and_device(request):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    if request.param == "cuda" and not (torch.cuda.is_available() and cdd.kernels_run_on == "gpu"):
        pytest.skip("the package was built for the CPU, or PyTorch sees no CUDA device")
    torch.manual_seed(20)
    return torch, request.param


def plain_attention(torch, q, k, v, scale, causal):
    scores = scale * q @ k.transpose(2, 3)
    if causal:
        hidden = torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device).triu(
            1 + k.shape[2] - q.shape[2]
        )
        scores = scores.masked_fill(hidden, -float("inf"))
    return torch.softmax(scores, dim=-1) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("type_name", ["float32", "float16", "bfloat16"])
def test_gradients_are_those_of_pytorch(torch_and_device, type_name, causal):
    torch, device = torch_and_device
    dtype = getattr(torch, type_name)
    shape_q, shape_k = (2, 2, 37, 16), (2, 2, 45, 16)
    inputs = [
        torch.randn(shape, device=device).to(dtype).requires_grad_() for shape in (shape_q, shape_k, shape_k)
    ]
    weights = torch.randn(shape_q, device=device)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    (plain_attention(torch, *exact, 0.25, causal) * weights).sum().backward()
    for deterministic in (False, True):
        torch.use_deterministic_algorithms(deterministic)
        try:
            for x in inputs:
                x.grad = None
            out = cdd.attention(*inputs, causal=causal)
            (out.float() * weights).sum().backward()
        finally:
            torch.use_deterministic_algorithms(False)
        assert out.dtype == dtype
        tolerance = 4 * TOLERANCE[type_name]
        for x, theirs in zip(inputs, exact):
            assert x.grad.dtype == dtype
            difference = (x.grad.double() - theirs.grad).abs().max()
            assert difference <= tolerance * theirs.grad.abs().max()
    # A sum's gradient has one address for all elements.
    cdd.attention(*inputs).sum().backward()


def test_the_gradient_agrees_with_differences(torch_and_device):
    """Of float32, by central differences along a random direction: no formula of a gradient is used."""
    torch, device = torch_and_device
    q, k, v = (torch.randn(1, 1, 6, 8, device=device).requires_grad_() for _ in range(3))
    w = torch.randn(1, 1, 6, 8, device=device)
    (cdd.attention(q, k, v, causal=True) * w).sum().backward()
    for x in (q, k, v):
        direction, h = torch.randn_like(x), 2.0**-7
        values = []
        for sign in (1, -1):
            moved = [(y + sign * h * direction if y is x else y).detach() for y in (q, k, v)]
            values.append((cdd.attention(*moved, causal=True).double() * w.double()).sum())
        # Of third order in h, and a rounding of 2^-24 of about 50 terms, divided by 2 h.
        assert abs((values[0] - values[1]) / (2 * h) - (x.grad * direction).sum().double()) <= 2e-2


def test_grouped_heads_get_a_gradient_by_repetition(torch_and_device):
    torch, device = torch_and_device
    q = torch.randn(1, 4, 5, 8, device=device, requires_grad=True)
    k, v = (torch.randn(1, 2, 5, 8, device=device, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match="k is of shape .*; expected batch 1, as many as 4 heads"):
        cdd.attention(q, k, v)
    cdd.attention(q, k.repeat_interleave(2, dim=1), v.repeat_interleave(2, dim=1)).sum().backward()
    assert k.grad.shape == k.shape


def test_bfloat16_attention(torch_and_device):
    torch, device = torch_and_device
    q, k, v = (torch.randn(2, 2, 40, 64, device=device).bfloat16() for _ in range(3))
    got = cdd.attention(q, k, v, causal=True).double()
    expected = plain_attention(torch, q.double(), k.double(), v.double(), 1 / 8, True)
    assert (got - expected).abs().max() <= TOLERANCE["bfloat16"] * v.double().abs().max()


@pytest.mark.parametrize("bias", [False, True])
def test_the_layer_has_the_weights_of_pytorchs(torch_and_device, bias):
    torch, device = torch_and_device
    theirs = torch.nn.MultiheadAttention(24, 3, bias=bias, batch_first=True).to(device).eval()
    if bias:
        torch.nn.init.normal_(theirs.in_proj_bias)
        torch.nn.init.normal_(theirs.out_proj.bias)
    layer = cdd.AttentionLayer.from_torch(theirs)
    x, y = torch.randn(2, 11, 24, device=device), torch.randn(2, 7, 24, device=device)
    hidden = torch.zeros(2, 7, dtype=torch.bool, device=device)
    hidden[0, 3:] = True
    with torch.no_grad():
        torch.testing.assert_close(layer(x, x, x)[0], theirs(x, x, x)[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(layer(x, y, y)[0], theirs(x, y, y)[0], rtol=1e-4, atol=1e-5)
        got = layer(x, y, y, key_padding_mask=hidden)[0]
        torch.testing.assert_close(got, theirs(x, y, y, key_padding_mask=hidden)[0], rtol=1e-4, atol=1e-5)
        causal = torch.ones(11, 11, dtype=torch.bool, device=device).triu(1)
        got = layer(x, x, x, is_causal=True)[0]
        torch.testing.assert_close(got, theirs(x, x, x, attn_mask=causal)[0], rtol=1e-4, atol=1e-5)
        # Weights that change are copied anew.
        theirs.in_proj_weight.mul_(0.5)
        layer.load_state_dict(theirs.state_dict())
        torch.testing.assert_close(layer(x, x, x)[0], theirs(x, x, x)[0], rtol=1e-4, atol=1e-5)


def test_the_layer_can_be_trained(torch_and_device):
    torch, device = torch_and_device
    theirs = torch.nn.MultiheadAttention(24, 3, batch_first=True).to(device)
    layer = cdd.AttentionLayer.from_torch(theirs)
    x = torch.randn(2, 9, 24, device=device)
    for module in (theirs, layer):
        (module(x, x, x)[0] ** 2).sum().backward()
    for (name, ours), (_, expected) in zip(
        sorted(layer.named_parameters()), sorted(theirs.named_parameters())
    ):
        torch.testing.assert_close(ours.grad, expected.grad, rtol=1e-3, atol=1e-4, msg=name)
    with pytest.raises(ValueError, match="layer.batch_first is False; expected True"):
        cdd.AttentionLayer.from_torch(torch.nn.MultiheadAttention(24, 3))
    with pytest.raises(ValueError, match="heads is 5; expected a divisor of width, 24"):
        cdd.AttentionLayer(24, 5)
