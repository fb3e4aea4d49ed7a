"""The kernels of the course "CUDA, day by day", for tensors of NumPy, PyTorch and CuPy.

Tensors are taken as they are, by DLPack, without copies. Results are new tensors of the same
library on the same device, or those given as `out`. Work on a GPU is queued on `stream`, by default
the current stream of PyTorch or CuPy, and not waited for.

TypeError for an argument that is no tensor or has the wrong type of elements; ValueError for a
wrong shape, layout, place or choice; both name the argument, its value and what was expected.
RuntimeError when CUDA fails.

The docstring of each function names the day that has its kernels; the header of that day defines
the results in all cases.
"""

from . import _extension
from ._attention import attention, attention_with_gradient, decode_attention
from ._layers import SparseMatrix, conv2d, spmv
from ._products import (
    Best,
    Clusters,
    bmm,
    bmm_argmax,
    bmm_argmin,
    bmm_logsumexp,
    bmm_masked,
    bmm_max,
    bmm_min,
    bmm_sum,
    bmm_topk,
    kmeans,
    topk,
)
from ._quantization import (
    Int8Linear,
    Quantized,
    QuantizedBlocks,
    dequantize,
    dequantize_blocks,
    find_parameters,
    int8_matmul,
    quantize,
    quantize_blocks,
    quantize_with,
)
from ._rows import log_softmax, scan, softmax, sort

__all__ = [
    "AttentionLayer",
    "Best",
    "Clusters",
    "Int8Linear",
    "Quantized",
    "QuantizedBlocks",
    "SparseMatrix",
    "attention",
    "attention_with_gradient",
    "bmm",
    "bmm_argmax",
    "bmm_argmin",
    "bmm_logsumexp",
    "bmm_masked",
    "bmm_max",
    "bmm_min",
    "bmm_sum",
    "bmm_topk",
    "conv2d",
    "decode_attention",
    "dequantize",
    "dequantize_blocks",
    "find_parameters",
    "int8_matmul",
    "kernels_run_on",
    "kmeans",
    "log_softmax",
    "quantize",
    "quantize_blocks",
    "quantize_with",
    "scan",
    "softmax",
    "sort",
    "spmv",
    "topk",
]

kernels_run_on: str = _extension.kernels_run_on
"""Where the package was built: "gpu", or "cpu" for the stand-in. With "gpu", tensors of the CPU are left to the CPU reference."""


def __getattr__(name):
    if name == "AttentionLayer":  # imports PyTorch, which may not be installed
        from .nn import AttentionLayer

        return AttentionLayer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
