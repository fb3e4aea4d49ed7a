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


def missing(name, device):
    """Why there is no such library, or None."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return f"{name} is not installed"
    if device == "cuda" and cdd.kernels_run_on == "cpu":
        return "the package was built for the CPU"
    if device == "cuda" and not module.cuda.is_available():
        return f"{name} sees no CUDA device"
    return None


LIBRARIES = [("numpy", "cpu"), ("torch", "cpu"), ("torch", "cuda"), ("cupy", "cuda")]
MISSING = {library: missing(*library) for library in LIBRARIES}


@pytest.fixture(params=[library for library in LIBRARIES if not MISSING[library]], ids="_".join)
def library(request):
    name, device = request.param
    return Library(name, importlib.import_module(name), device)


@pytest.fixture(params=LIBRARIES, ids="_".join)
def library_or_skip(request):
    if MISSING[request.param]:
        pytest.skip(MISSING[request.param])


@pytest.fixture
def torch_cuda():
    if MISSING["torch", "cuda"]:
        pytest.skip(MISSING["torch", "cuda"])
    return importlib.import_module("torch")


@pytest.fixture
def random():
    return np.random.default_rng(20)
