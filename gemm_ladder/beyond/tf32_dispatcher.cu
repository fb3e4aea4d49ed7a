// When step 16 runs its kernel, and with how many splits: the rule and the host side.
//
// Small products are launch-bound, or leave SMs empty. Tensor cores gain nothing there, and the
// copies and additions that they need cost time. So the time of each number of splits is predicted,
// and that of step 14 (which predicts its own); the smallest wins.
#include <cstddef>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>

#include "beyond.hpp"
#include "common/device/aligned_copy.cuh"
#include "launch.hpp"
#include "tf32x3_wgmma.hpp"
#include "thin.hpp"
#include "tiles.hpp"

namespace gemm {
namespace {

// Microseconds, measured on an H100 (SXM).
constexpr double kLaunch = 3;           // of a kernel
constexpr double kTile = 4;             // prologue and epilogue
constexpr double kStep = 1.1;           // 32 columns of A
constexpr double kPerElement = 1.5e-6;  // of a matrix that is written and read again
constexpr int kMostSplits = 64;

double elements(std::size_t rows, std::size_t cols) {
    return static_cast<double>(rows) * static_cast<double>(cols);
}

// The time of the kernel: waves of blocks, one block on each SM, and the sums of the parts.
double time_of(const Shape& shape, int splits, unsigned multiprocessors) {
    const auto parts = static_cast<std::size_t>(splits);
    const std::size_t blocks = tiles_in<kTf32Tile, kTf32Tile>(shape.m, shape.n) * parts;
    const std::size_t waves = course::ceil_div<std::size_t>(blocks, multiprocessors);
    const std::size_t steps = course::ceil_div(course::ceil_div<std::size_t>(shape.k, kTf32Step), parts);
    double time = kLaunch + static_cast<double>(waves) * (kTile + kStep * static_cast<double>(steps));
    if (splits > 1) time += kLaunch + kPerElement * splits * elements(shape.m, shape.n);
    return time;
}

double time_of_copies(const Shape& shape) {
    double time = 0;
    if (shape.k % 4 != 0) time += kLaunch + kPerElement * elements(shape.m, shape.k);
    if (shape.n % 4 != 0) time += kLaunch + kPerElement * elements(shape.k, shape.n);
    return time;
}

// The number of splits, or 0: step 14.
int predict_best(const Shape& shape, const Gpu& gpu) {
    // Of sums of a few terms, the error would be larger than FP32's (common/tile/tf32_split.cuh).
    if (shape.k < kTf32Step || is_worth_a_thin_kernel(shape)) return 0;
    int best = 1;
    for (int splits = 2; splits <= kMostSplits; ++splits) {
        if (time_of(shape, splits, gpu.multiprocessors) < time_of(shape, best, gpu.multiprocessors))
            best = splits;
    }
    const bool aligned = shape.n % 4 == 0 && shape.k % 4 == 0;
    const double fp32 = choose(shape, aligned, gpu).microseconds;
    return time_of(shape, best, gpu.multiprocessors) + time_of_copies(shape) < fp32 ? best : 0;
}

// The same. A prediction takes longer than a small product, so each is made once.
int best_splits(const Shape& shape) {
    static std::mutex mutex;
    static std::map<std::tuple<std::size_t, std::size_t, std::size_t, int>, int> known;
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    const std::scoped_lock lock(mutex);
    const auto [at, is_new] = known.try_emplace({shape.m, shape.n, shape.k, device}, 0);
    if (is_new) at->second = predict_best(shape, current_gpu());
    return at->second;
}

ScratchSize scratch(const Shape& shape) {
    const int splits = best_splits(shape);
    return splits == 0 ? dispatcher().scratch(shape) : tf32x3_wgmma_scratch(shape, splits);
}

// On tensor cores. Matrices with unaligned rows are copied.
void launch_on_tensor_cores(int splits, const Sgemm& gemm, cudaStream_t stream) {
    const course::Aligned<float> a(gemm.a, stream);
    const course::Aligned<float> b(gemm.b, stream);
    Sgemm aligned = gemm;
    aligned.a = a.matrix();
    aligned.b = b.matrix();
    launch_tf32x3_wgmma(splits, aligned, stream);
}

void require_hopper() {
    const std::string reason = why_no_tf32_wgmma({});
    if (!reason.empty()) throw std::invalid_argument("sgemm: " + reason);
}

void launch_alone(const Sgemm& gemm, cudaStream_t stream) {
    require_hopper();
    launch_on_tensor_cores(1, checked(gemm), stream);
}

void launch(const Sgemm& given, cudaStream_t stream) {
    require_hopper();
    const Shape shape{given.m(), given.n(), given.k()};
    const int splits = best_splits(shape);
    if (splits == 0) return dispatcher().launch(given, stream);
    launch_on_tensor_cores(splits, checked(given, tf32x3_wgmma_scratch(shape, splits)), stream);
}

}  // namespace

Kernel tf32x3_wgmma_alone() {
    return {launch_alone, tf32x3_wgmma_resources};
}

Kernel tf32x3_wgmma() {
    return {launch, tf32x3_wgmma_resources, scratch};
}

}  // namespace gemm
