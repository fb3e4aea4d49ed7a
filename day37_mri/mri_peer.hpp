// cuBLAS and cuFFT, to measure against.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

#include "common/device/device_view.hpp"
#include "grid.hpp"
#include "mri.hpp"

namespace day37 {

// Why there is no cuBLAS in this build, or "".
std::string why_no_cublas();

// The sums of all waves as `separable` has them, by cublasCgemm in FP32 (no TF32): kernels compute
// the waves along x and, of each row and sample, mu times those along y and z; cuBLAS multiplies
// the two matrices; a kernel splits the result into its parts. Memory for the matrices is allocated
// here, 8 bytes for each row and sample. Where there is no cuBLAS, an empty function.
std::function<void(cudaStream_t)> make_cublas_sum(const KSpace& k, const Grid& grid, const Image& out);

// (F^H F) x as cuFFT is usually called: x padded with zeros, a transform of all of it, a product
// with the transform of Q, a transform back, and the image cut out. `padded` has at least 2 n - 1
// elements along each axis. Q is computed here, and not where it is timed. Where there is no
// transform (why_no_fft()), an empty function.
std::function<void(cudaStream_t)> make_cufft_product(const Grid& grid, const Grid& padded, const KSpace& k,
                                                     course::DeviceSpan<const float2> x,
                                                     course::DeviceSpan<float2> out);

}  // namespace day37
