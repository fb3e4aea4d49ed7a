"""The libraries whose tensors every test gets: NumPy always, PyTorch and CuPy where they are."""

import importlib

import numpy as np
import pytest

import cuda_day_by_day as cdd


class Library:
    """Makes tensors of one library in one place, and looks into them."""

    def __init__(self, name, module, device="cpu"):
        self.name = name
        self.module = module
        self.device = device

    def tensor(self, array):
        if self.name == "torch":
            return self.module.from_numpy(array.copy()).to(self.device)
        return self.module.asarray(array).copy()

    def matrix_in_a_wider_one(self, array, gap):
        """The same matrix, its rows `gap` elements apart."""
        wide = np.zeros((array.shape[0], array.shape[1] + gap), array.dtype)
        wide[:, : array.shape[1]] = array
        return self.tensor(wide)[:, : array.shape[1]]

    def empty(self, shape, dtype):
        return self.tensor(np.full(shape, 77, dtype))

    def numpy(self, tensor):
        if self.name == "torch":
            return tensor.cpu().numpy()
        return tensor.get() if self.name == "cupy" else tensor

    def address(self, tensor):
        if self.name == "torch":
            return tensor.data_ptr()
        return tensor.data.ptr if self.name == "cupy" else tensor.ctypes.data

    @property
    def kind(self):
        return {"torch": lambda: self.module.Tensor}.get(self.name, lambda: self.module.ndarray)()

    @property
    def on_gpu(self):
        return self.device != "cpu"


def library_or_skip(name, device):
    if name == "numpy":
        return Library(name, np)
    module = pytest.importorskip(name, exc_type=ImportError)
    if device == "cpu":
        return Library(name, module)
    if cdd.kernels_run_on == "cpu":
        pytest.skip("the package was built for the CPU")
    if not (module.cuda.is_available()):
        pytest.skip(f"{name} sees no CUDA device")
    return Library(name, module, "cuda")


LIBRARIES = [("numpy", "cpu"), ("torch", "cpu"), ("torch", "cuda"), ("cupy", "cuda")]


@pytest.fixture(params=LIBRARIES, ids=lambda p: "_".join(p))
def library(request):
    return library_or_skip(*request.param)


@pytest.fixture
def torch_cuda():
    return library_or_skip("torch", "cuda").module


@pytest.fixture
def random():
    return np.random.default_rng(20)
