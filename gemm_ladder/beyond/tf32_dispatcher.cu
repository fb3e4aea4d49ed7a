// When step 16 runs its kernel, and with how many splits: the rule and the host side.
//
// Small products are limited by launches and by empty SMs. Tensor cores gain nothing there, and the
// copies and additions that they need cost time. So the time of each number of splits is predicted,
// and that of step 14 (which predicts its own): the least is taken.
#include <algorithm>
#include <cmath>
#include <string>

#include "beyond.hpp"
#include "common/device/aligned_copy.cuh"
#include "launch.hpp"
#include "tf32x3_wgmma.hpp"
#include "thin.hpp"
#include "tiles.hpp"

namespace gemm {
namespace {

// Microseconds, measured on an H200.
constexpr double kStep = 1.25;        // 32 columns of A, of the tiles of all SMs at the same time
constexpr double kTile = 4;           // prologue and epilogue
constexpr double kLaunch = 3;         // of another kernel
constexpr double kPerElement = 4e-6;  // of a matrix that is written and read again
constexpr int kMostSplits = 64;

bool rows_are_aligned_for_tma(const Shape& shape) {
    return shape.n % 4 == 0 && shape.k % 4 == 0;
}

double elements(std::size_t rows, std::size_t cols) {
    return static_cast<double>(rows) * static_cast<double>(cols);
}

double time_of(const Shape& shape, int splits) {
    const std::size_t steps = course::ceil_div<std::size_t>(shape.k, kTf32Step);
    const std::size_t each = course::ceil_div<std::size_t>(steps, static_cast<std::size_t>(splits));
    const double blocks = static_cast<double>(tiles_in<kTf32Tile, kTf32Tile>(shape.m, shape.n)) * splits;
    const double rounds = std::ceil(blocks / course::multiprocessors());
    double time = rounds * (kTile + kStep * static_cast<double>(each));
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
int best_splits(const Shape& shape) {
    if (is_worth_a_thin_kernel(shape)) return 0;
    int best = 1;
    for (int splits = 2; splits <= kMostSplits; ++splits) {
        if (time_of(shape, splits) < time_of(shape, best)) best = splits;
    }
    const double fp32 = choose(shape, rows_are_aligned_for_tma(shape), current_gpu()).microseconds;
    return time_of(shape, best) + time_of_copies(shape) < fp32 ? best : 0;
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
    const std::string reason = why_no_tf32_wgmma(Shape{});
    if (!reason.empty()) throw std::invalid_argument("sgemm: " + reason);
}

void launch_alone(const Sgemm& gemm, cudaStream_t stream) {
    require_hopper();
    launch_on_tensor_cores(1, checked(gemm), stream);
}

void launch(const Sgemm& given, cudaStream_t stream) {
    require_hopper();
    const Shape shape{given.m(), given.n(), given.k()};
    const Sgemm gemm = checked(given, scratch(shape));
    const int splits = gemm.k() == 0 ? 0 : best_splits(shape);
    if (splits == 0) return dispatcher().launch(gemm, stream);
    launch_on_tensor_cores(splits, gemm, stream);
}

}  // namespace

Kernel tf32x3_wgmma_alone() {
    return {launch_alone, tf32x3_wgmma_resources};
}

Kernel tf32x3_wgmma() {
    return {launch, tf32x3_wgmma_resources, scratch};
}

}  // namespace gemm
