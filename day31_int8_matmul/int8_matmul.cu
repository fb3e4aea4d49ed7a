// Day 31's host code: argument checks and the list of versions. The kernels and their launches are
// in int8_matmul.cuh and beyond/.
#include <array>
#include <string>

#include "beyond/int8_tensor_cores.cuh"
#include "beyond/int8_wgmma.hpp"
#include "common/check/check.hpp"
#include "common/check/matrix_arguments.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_core_support.hpp"
#include "int8_matmul.cuh"
#include "int8_matmul.hpp"

namespace day31 {
namespace {

using In = DeviceMatrix<const std::int8_t>;
using Out = DeviceMatrix<std::int32_t>;

// Throws std::invalid_argument unless the arguments are as int8_matmul.hpp says. False when there
// is nothing to do.
bool check_arguments(In a, In w, Out c) {
    require_shape("int8_matmul: w", w, w.rows(), a.cols());
    require_shape("int8_matmul: c", c, a.rows(), w.rows());
    course::require(a.cols() <= kLongestSum, "int8_matmul: k is ", a.cols(), "; expected at most ",
                    kLongestSum, ", or sums would not fit in 32 bits");
    require_apart("int8_matmul: c", c, "a", a);
    require_apart("int8_matmul: c", c, "w", w);
    return c.rows() != 0 && c.cols() != 0;
}

bool both_are_aligned(In a, In w) {
    return rows_are_aligned(a, 16) && rows_are_aligned(w, 16);
}

void multiply_scalar(In a, In w, Out c, cudaStream_t stream) {
    if (!check_arguments(a, w, c)) return;
    launch_scalar(a, w, c, stream);
    CUDA_CHECK_LAUNCH();
}

void multiply_dp4a(In a, In w, Out c, cudaStream_t stream) {
    if (!check_arguments(a, w, c)) return;
    (both_are_aligned(a, w) ? launch_dp4a<true> : launch_dp4a<false>)(a, w, c, stream);
    CUDA_CHECK_LAUNCH();
}

template <class Shape, auto kKernel>
std::string tile_constraint(const MatmulShape& = {}) {
    return course::why_no_tensor_cores(kKernel, Shape::SHARED);
}

// mma_sync, tensor_cores
template <class Shape, auto kKernel, auto kLaunch>
void multiply_tiles(In a, In w, Out c, cudaStream_t stream) {
    const std::string reason = tile_constraint<Shape, kKernel>();
    course::require(reason.empty(), "int8_matmul: this version ", reason);
    require_aligned_rows("int8_matmul: a", a);
    require_aligned_rows("int8_matmul: w", w);
    if (!check_arguments(a, w, c)) return;
    kLaunch(a, w, c, stream);
}

constexpr auto multiply_mma_sync = multiply_tiles<OneStage, mma_sync<OneStage>, launch_mma_sync<OneStage>>;
constexpr auto multiply_tensor_cores =
    multiply_tiles<ThreeStages, tensor_cores<ThreeStages>, launch_tensor_cores<ThreeStages>>;
constexpr auto tensor_cores_constraint = tile_constraint<ThreeStages, tensor_cores<ThreeStages>>;

std::string wgmma_constraint(const MatmulShape& = {}) {
    return course::why_no_hopper();
}

void multiply_wgmma(In a, In w, Out c, cudaStream_t stream) {
    const std::string reason = wgmma_constraint();
    course::require(reason.empty(), "int8_matmul: this version ", reason);
    require_aligned_rows("int8_matmul: a", a);
    require_aligned_rows("int8_matmul: w", w);
    if (check_arguments(a, w, c)) launch_wgmma(a, w, c, stream);
}

void multiply_chosen(In a, In w, Out c, cudaStream_t stream) {
    if (!both_are_aligned(a, w)) return multiply_dp4a(a, w, c, stream);
    if (wgmma_constraint().empty()) return multiply_wgmma(a, w, c, stream);
    (tensor_cores_constraint({}).empty() ? multiply_tensor_cores : multiply_dp4a)(a, w, c, stream);
}

course::Work work(const MatmulShape& shape) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = m * k + n * k + 4 * m * n,
            .written = 4 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = course::Arithmetic::kOther};
}

course::KernelResources scalar_resources() {
    return course::resources_of(scalar, kScalarThreads);
}
course::KernelResources dp4a_resources() {
    return course::resources_of(dp4a<true>, kDotThreads);
}
template <class Shape, auto kKernel>
course::KernelResources tile_resources() {
    course::allow_shared_bytes(kKernel, Shape::SHARED);
    return course::resources_of(kKernel, Shape::THREADS, Shape::SHARED);
}

}  // namespace

std::span<const Version> versions() {
    constexpr auto kTensorCoresResources = tile_resources<ThreeStages, tensor_cores<ThreeStages>>;
    static const std::array<Version, 6> list = {{
        {"scalar", "a thread for each result", {multiply_scalar, scalar_resources}, work},
        {"dp4a",
         "four products in an instruction, tiles in shared memory",
         {multiply_dp4a, dp4a_resources},
         work},
        {"mma_sync",
         "mma.m16n8k32 on tensor cores",
         {multiply_mma_sync, tile_resources<OneStage, mma_sync<OneStage>>, true},
         work,
         tile_constraint<OneStage, mma_sync<OneStage>>},
        {"tensor_cores",
         "stages in flight, fragments one step ahead",
         {multiply_tensor_cores, kTensorCoresResources, true},
         work,
         tensor_cores_constraint},
        {"wgmma",
         "TMA and wgmma, and a tile that suits the shape",
         {multiply_wgmma, nullptr, true},
         work,
         wgmma_constraint},
        {"auto",
         "wgmma, else tensor cores, where the GPU has them and rows are aligned",
         {multiply_chosen, nullptr},
         work},
    }};
    return list;
}

}  // namespace day31
