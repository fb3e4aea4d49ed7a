// C = A B^T on tensor cores with 8-bit operands: INT8 summed in 32-bit integers, or FP8 summed in
// FP32. The host API of the day.
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/kernel_resources.hpp"
#include "common/bench/version.hpp"
#include "common/check/matmul_arguments.hpp"
#include "common/device/device_view.hpp"
#include "sum_type.hpp"

namespace day42 {

// C is m x n, A is m x k, B is n x k.
using Shape = course::MatmulShape;

// One multiplication: A is M x K, B is N x K, C is M x N, all row-major, with the views' leading
// dimensions. Both operands are K-major, the only layout in which the instructions take 8-bit
// operands. Integer sums wrap beyond 32 bits, which takes more than 131071 products.
template <class T>
struct Product {
    course::DeviceMatrix<const T> a;
    course::DeviceMatrix<const T> b;
    course::DeviceMatrix<Sum<T>> c;
};

// How a version runs with operands of type T; null where there is none. `launch` queues the
// multiplication; it throws std::invalid_argument when shapes do not match, C overlaps A or B, or
// why_not() gives a reason, and CudaError when CUDA refuses.
template <class T>
struct KernelFor {
    void (*launch)(const Product<T>& product, cudaStream_t stream) = nullptr;
    // Why this version cannot take these operands (their alignment and leading dimensions) on this
    // GPU, or "".
    std::string (*why_not)(const Product<T>& product) = nullptr;
    course::KernelResources (*resources)() = nullptr;
};

struct Kernels {
    KernelFor<std::int8_t> int8;
    KernelFor<__nv_fp8_e4m3> e4m3;
    KernelFor<__nv_fp8_e5m2> e5m2;

    template <class T>
    const KernelFor<T>& of() const {
        if constexpr (std::is_same_v<T, std::int8_t>) {
            return int8;
        } else if constexpr (std::is_same_v<T, __nv_fp8_e4m3>) {
            return e4m3;
        } else {
            return e5m2;
        }
    }
};

using Version = course::Version<Kernels, Shape>;

// Slow to fast.
std::span<const Version> versions();

// The tiles that `bytes_fitted` chooses from. One of them is a version itself.
std::span<const Version> tiles_to_choose_from();

// The name of the tile that it chooses for a shape, on a GPU with so many multiprocessors.
std::string tile_for(const Shape& shape, std::size_t multiprocessors);

// The reference, packed: a is m x k, b is n x k; product and magnitude as in
// common/check/matmul_reference.hpp, exact for integers. Throws std::invalid_argument when a length
// does not match the shape.
template <class T>
void multiply_on_cpu(const Shape& shape, std::span<const T> a, std::span<const T> b,
                     std::span<double> product, std::span<double> magnitude);

// The same values, exactly; and those of a packed rows x cols matrix, transposed.
template <class T>
std::vector<float> as_floats(std::span<const T> values);
template <class T>
std::vector<float> transposed(std::span<const T> values, std::size_t rows, std::size_t cols);

}  // namespace day42
