#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <limits>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/stream_buffer.hpp"
#include "common/tile/few_results.cuh"

namespace course {
namespace {

constexpr std::size_t kMostSplits = 65535;   // a grid's y
constexpr double kMostResults = 2147483647;  // counted in 32 bits

template <class T, unsigned kLanes>
void launch_by_lanes(const OperandsOf<T>& operands, const Batch<FewSum<T>>& c, FewSum<T> alpha,
                     FewSum<T> beta, std::size_t results, cudaStream_t stream) {
    few::multiply_by_lanes<T, kLanes>
        <<<blocks_for(results * kLanes, few::kThreads), few::kThreads, 0, stream>>>(
            operands, c, alpha, beta, static_cast<unsigned>(results));
}

template <class T>
void launch_parts(const FewResultsPlan& plan, const OperandsOf<T>& operands, const Batch<FewSum<T>>& c,
                  FewSum<T> alpha, FewSum<T> beta, std::size_t results, cudaStream_t stream) {
    const auto m = static_cast<unsigned>(operands.m());
    const auto n = static_cast<unsigned>(operands.n());
    const auto tiles_across = ceil_div<unsigned>(n, few::kEdge);
    const unsigned tiles = ceil_div<unsigned>(m, few::kEdge) * tiles_across;
    const std::size_t slabs = ceil_div<std::size_t>(operands.k(), few::kDepth);
    const auto part = static_cast<unsigned>(ceil_div<std::size_t>(slabs, plan.splits) * few::kDepth);
    const StreamBuffer<few::Wrapping<T>> parts(plan.splits * results, stream);
    const dim3 grid(blocks_for(operands.count() * tiles, 1), plan.splits);
    few::multiply_part_of_k<T>
        <<<grid, few::kThreads, 0, stream>>>(operands, parts.data(), part, tiles_across, tiles);
    CUDA_CHECK_LAUNCH();
    few::add_parts<T><<<blocks_for(results, few::kTogether), few::kThreads, 0, stream>>>(
        parts.data(), plan.splits, c, alpha, beta, m, n, static_cast<unsigned>(results));
}

}  // namespace

// The constants are microseconds, fitted by hand to the times of 63 shapes of floats, BF16 and
// bytes on an H200.
FewResultsPlan plan_few_results(const ProductShape& shape, std::size_t multiprocessors) {
    const auto results = static_cast<double>(shape.count * shape.m * shape.n);
    const auto sms = static_cast<double>(multiprocessors);
    const auto depth = static_cast<double>(shape.k);

    FewResultsPlan by_lanes{.lanes = 1};
    while (by_lanes.lanes < 32 && results * by_lanes.lanes < sms * 1024 && depth > 4 * by_lanes.lanes)
        by_lanes.lanes *= 2;
    if (results >= kMostResults) return {.lanes = 1, .microseconds = std::numeric_limits<double>::infinity()};
    const double steps = depth / by_lanes.lanes;
    by_lanes.microseconds = 2.9 + 0.05 * steps + (8e-4 * results + 6e-5 * results * depth) / sms;

    // Only for a deep K, and as many tiles as multiprocessors at most: others need no scratch
    // memory.
    const std::size_t tiles =
        shape.count * ceil_div<std::size_t>(shape.m, few::kEdge) * ceil_div<std::size_t>(shape.n, few::kEdge);
    const std::size_t splits = std::min(
        {2 * multiprocessors / std::max<std::size_t>(tiles, 1), shape.k / (2 * few::kDepth), kMostSplits});
    if (splits < 2) return by_lanes;
    const double slabs = std::max(1.0, depth / static_cast<double>(splits) / few::kDepth);
    const FewResultsPlan in_parts{.splits = static_cast<unsigned>(splits), .microseconds = 9.5 + 1.6 * slabs};
    return in_parts.microseconds < by_lanes.microseconds ? in_parts : by_lanes;
}

template <class T>
void multiply_few(const FewResultsPlan& plan, const OperandsOf<T>& operands, const Batch<FewSum<T>>& c,
                  FewSum<T> alpha, FewSum<T> beta, cudaStream_t stream) {
    const std::size_t results = operands.count() * operands.m() * operands.n();
    require(static_cast<double>(results) <= kMostResults, "multiply_few: C has ", results,
            " elements; expected fewer than 2^31");
    require(plan.lanes <= 32 && (plan.lanes & (plan.lanes - 1)) == 0, "multiply_few: lanes is ", plan.lanes,
            "; expected 0, or a power of two up to 32");
    require(plan.lanes > 0 || (plan.splits > 0 && plan.splits <= kMostSplits), "multiply_few: splits is ",
            plan.splits, "; expected from 1 to ", kMostSplits);
    // With alpha = 0, A and B are not read.
    switch (alpha == 0 ? 1 : plan.lanes) {
        case 0:
            launch_parts<T>(plan, operands, c, alpha, beta, results, stream);
            break;
        case 1:
            launch_by_lanes<T, 1>(operands, c, alpha, beta, results, stream);
            break;
        case 2:
            launch_by_lanes<T, 2>(operands, c, alpha, beta, results, stream);
            break;
        case 4:
            launch_by_lanes<T, 4>(operands, c, alpha, beta, results, stream);
            break;
        case 8:
            launch_by_lanes<T, 8>(operands, c, alpha, beta, results, stream);
            break;
        case 16:
            launch_by_lanes<T, 16>(operands, c, alpha, beta, results, stream);
            break;
        default:
            launch_by_lanes<T, 32>(operands, c, alpha, beta, results, stream);
    }
    CUDA_CHECK_LAUNCH();
}

#define COURSE_FEW_RESULTS(T)                                                                        \
    template void multiply_few(const FewResultsPlan&, const OperandsOf<T>&, const Batch<FewSum<T>>&, \
                               FewSum<T>, FewSum<T>, cudaStream_t);
COURSE_FEW_RESULTS(float)
COURSE_FEW_RESULTS(__half)
COURSE_FEW_RESULTS(__nv_bfloat16)
COURSE_FEW_RESULTS(__nv_fp8_e4m3)
COURSE_FEW_RESULTS(__nv_fp8_e5m2)
COURSE_FEW_RESULTS(std::int8_t)
#undef COURSE_FEW_RESULTS

}  // namespace course
