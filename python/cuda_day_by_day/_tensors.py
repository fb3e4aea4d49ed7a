"""Tensors of NumPy, PyTorch and CuPy: new ones beside the caller's, and the stream that the caller works on.

A framework is only imported once a tensor of it is given. Any other object with `__dlpack__` may be
read and written too; results beside it are NumPy arrays, which is only possible on the CPU.
"""

import contextlib
import importlib

_CUDA = (2, 13)  # DLPack's device types kDLCUDA and kDLCUDAManaged
_LEGACY_DEFAULT_STREAM = 1  # as DLPack numbers streams; CUDA's own number for it is 0


def device_of(name, tensor):
    """The DLPack device (type, index). TypeError for what is no tensor."""
    if not (hasattr(tensor, "__dlpack__") and hasattr(tensor, "__dlpack_device__")):
        raise TypeError(
            f"{name} is of type {type(tensor).__name__}; expected a tensor of NumPy, PyTorch, CuPy or another library with __dlpack__"
        )
    kind, index = tensor.__dlpack_device__()
    return int(kind), index


def type_name(dtype):
    """ "float16" of that string, numpy.float16, numpy.dtype("float16") or torch.float16."""
    return getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]


def shape_of(name, x):
    device_of(name, x)
    return tuple(x.shape)


def matrix_shape(name, x):
    shape = shape_of(name, x)
    if len(shape) != 2:
        raise ValueError(f"{name} is of shape {shape}; expected two dimensions")
    return shape


def _framework(tensor):
    for cls in type(tensor).__mro__:
        root = cls.__module__.partition(".")[0]
        if root in ("torch", "cupy", "numpy"):
            return root
    return "other"


def _stream_number(stream):
    """Of a number, a torch.cuda.Stream, a cupy.cuda.Stream, or anything with __cuda_stream__."""
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return getattr(stream, attribute)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return (protocol() if callable(protocol) else protocol)[1]
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    raise TypeError(
        f"stream is {stream!r}; expected a stream of PyTorch or CuPy, or the number of a cudaStream_t"
    )


class Place:
    """Where a call is carried out: beside `like`, the tensor called `name`, on its framework's
    current stream or on `stream`.
    """

    def __init__(self, name, like, stream):
        self._name = name
        self._like = like
        self._on_gpu = device_of(name, like)[0] in _CUDA
        self._framework = _framework(like)
        if stream is not None and not self._on_gpu:
            raise ValueError(f"stream is {stream!r}; expected None, for {name} is on the CPU")
        current = self._current_stream()
        self.stream = current if stream is None else _stream_number(stream)
        self._is_current = self.stream == current

    @property
    def on_gpu(self):
        return self._on_gpu

    @property
    def framework(self):
        return self._framework

    def _current_stream(self):
        if not self._on_gpu:
            return 0
        if self._framework == "torch":
            return importlib.import_module("torch").cuda.current_stream(self._like.device).cuda_stream
        if self._framework == "cupy":
            return importlib.import_module("cupy").cuda.get_current_stream().ptr
        return 0

    def empty(self, shape, dtype):
        """A new tensor, uninitialised, contiguous."""
        if self._framework == "torch":
            torch = importlib.import_module("torch")
            return torch.empty(shape, dtype=getattr(torch, dtype), device=self._like.device)
        if self._framework == "cupy":
            cupy = importlib.import_module("cupy")
            with self._like.device:
                return cupy.empty(shape, dtype)
        if self._on_gpu:
            raise TypeError(
                f"{self._name} is of type {type(self._like).__name__}, whose library is not known here; expected out= for the results"
            )
        return importlib.import_module("numpy").empty(shape, dtype)

    def device(self):
        """Makes the device of `like` the current one, within a `with`."""
        if self._framework == "torch" and self._on_gpu:
            return importlib.import_module("torch").cuda.device(self._like.device)
        if self._framework == "cupy":
            return self._like.device
        return contextlib.nullcontext()

    def full(self, shape, dtype, value):
        """A new tensor, all elements of which are `value`. Queued on the current stream."""
        tensor = self.empty(shape, dtype)
        tensor[...] = value
        return tensor

    def copy(self, tensor):
        return tensor.clone() if self._framework == "torch" else tensor.copy()

    def as_bytes(self, mask):
        """A mask of bool as uint8, without a copy: not every PyTorch exports bool by DLPack."""
        if type_name(mask.dtype) != "bool":
            return mask
        if self._framework == "torch":
            return mask.view(importlib.import_module("torch").uint8)
        return mask.view("uint8")

    def to_numpy(self, tensor):
        """On the CPU, once the stream has come to it."""
        if not self._on_gpu:
            return tensor.numpy() if self._framework == "torch" else tensor
        if self._framework == "torch":
            with importlib.import_module("torch").cuda.stream(self._stream_of_torch(tensor.device)):
                return tensor.cpu().numpy()
        cupy = importlib.import_module("cupy")
        with cupy.cuda.ExternalStream(self.stream):
            return tensor.get()

    def _stream_of_torch(self, device):
        """Our stream as PyTorch's. It takes the number 0 for none, and ExternalStream(0) is another
        stream, from its pool."""
        cuda = importlib.import_module("torch").cuda
        return cuda.ExternalStream(self.stream, device=device) if self.stream else cuda.default_stream(device)

    def scratch(self, size):
        """Memory for intermediate results: on a GPU from the library's allocator, which knows
        when the stream is through with it. On the CPU the extension has its own.
        """
        return self.give("workspace", self.empty((size,), "uint8")) if self._on_gpu and size else None

    def give(self, name, tensor):
        """What the extension takes: the tensor, or on a GPU its capsule, after which our stream
        waits for the tensor's.
        """
        kind, _ = device_of(name, tensor)
        if getattr(tensor, "requires_grad", False):
            raise ValueError(
                f"{name} requires a gradient, and none is computed here; expected {name}.detach()"
            )
        if kind not in _CUDA:
            return tensor
        if _framework(tensor) == "torch" and not self._is_current:
            # PyTorch must not reuse the memory while our stream works on it.
            tensor.record_stream(self._stream_of_torch(tensor.device))
        return tensor.__dlpack__(stream=self.stream or _LEGACY_DEFAULT_STREAM)
