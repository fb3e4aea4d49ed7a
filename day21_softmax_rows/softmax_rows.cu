// Day 21's host code: argument checks, the list of versions and the choice of one by the shape. The
// kernels and their launches are in softmax_rows.cuh and beyond/.
#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "beyond/long_rows.cuh"
#include "beyond/short_rows.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "softmax_rows.cuh"
#include "softmax_rows.hpp"

namespace day21 {
namespace {

using course::DeviceMatrix;
using course::DeviceSpan;
using course::require;

// The most parts of a row that have a maximum and a sum of their own.
std::size_t most_parts(std::size_t cols) {
    return std::min(kMostParts, course::ceil_div<std::size_t>(cols, 1024));
}

// `reason` is that of the version's constraint.
void check_arguments(const std::string& reason, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                     DeviceSpan<MaxSum> workspace) {
    require(reason.empty(), "softmax: this version ", reason);
    require(in.rows() == out.rows() && in.cols() == out.cols(), "softmax: in is ", in, " and out ", out,
            "; expected the same shape");
    const bool same =
        in.data() == out.data() && (in.rows() <= 1 || in.leading_dimension() == out.leading_dimension());
    require(same || !course::overlap(in, out),
            "softmax: out overlaps in but is not in; expected the same address and leading dimension, or no "
            "element in common");
    const std::size_t needed = workspace_size(in.rows(), in.cols());
    require(workspace.size() >= needed, "softmax: workspace has ", workspace.size(),
            " elements; expected at least ", needed);
}

bool is_empty(DeviceMatrix<const float> in) {
    return in.rows() == 0 || in.cols() == 0;
}

bool rows_are_packs(DeviceMatrix<const float> matrix) {
    return course::is_aligned(matrix.data(), sizeof(Pack)) && matrix.cols() % kWidth == 0 &&
           (matrix.rows() <= 1 || matrix.leading_dimension() % kWidth == 0);
}

// Calls run<output, do all rows of both matrices consist of whole packs?>().
template <class Run>
void with_constants(Output output, DeviceMatrix<const float> in, DeviceMatrix<const float> out, Run run) {
    const bool whole = rows_are_packs(in) && rows_are_packs(out);
    if (output == Output::kSoftmax) {
        whole ? run.template operator()<Output::kSoftmax, true>()
              : run.template operator()<Output::kSoftmax, false>();
    } else {
        whole ? run.template operator()<Output::kLogSoftmax, true>()
              : run.template operator()<Output::kLogSoftmax, false>();
    }
}

std::string at_most(std::size_t most, const Problem& problem) {
    return problem.cols <= most
               ? ""
               : "keeps at most " + std::to_string(most) + " columns, not " + std::to_string(problem.cols);
}

std::string warp_constraint(const Problem& problem) {
    return at_most(kWarpCols, problem);
}

void run_warp_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                      DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(warp_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        launch_warp_per_row<kOutput, kWhole>(in.data(), in.leading_dimension(), out.data(),
                                             out.leading_dimension(), in.rows(), static_cast<int>(in.cols()),
                                             stream);
    });
    CUDA_CHECK_LAUNCH();
}

std::string block_constraint(const Problem& problem) {
    return at_most(kBlockCols, problem);
}

void run_block_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                       DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(block_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        launch_block_per_row<kOutput, kWhole>(in.data(), in.leading_dimension(), out.data(),
                                              out.leading_dimension(), in.rows(), static_cast<int>(in.cols()),
                                              stream);
    });
    CUDA_CHECK_LAUNCH();
}

std::string short_constraint(const Problem& problem) {
    return at_most(kShortCols, problem);
}

void run_lanes_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                       DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(short_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        launch_lanes_per_row<kOutput, kWhole>(in.data(), in.leading_dimension(), out.data(),
                                              out.leading_dimension(), in.rows(), static_cast<int>(in.cols()),
                                              stream);
    });
    CUDA_CHECK_LAUNCH();
}

bool is_contiguous(DeviceMatrix<const float> matrix) {
    return matrix.rows() <= 1 || matrix.leading_dimension() == matrix.cols();
}

void run_rows_in_shared(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                        DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    // Gaps between the rows would be copied, too.
    if (!is_contiguous(in) || !is_contiguous(out))
        return run_lanes_per_row(output, in, out, workspace, stream);
    check_arguments(short_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    const auto cols = static_cast<int>(in.cols());
    with_constants(output, in, out, [&]<Output kOutput, bool>() {
        launch_rows_in_shared<kOutput>(in.data(), out.data(), in.rows(), cols, stream);
    });
    CUDA_CHECK_LAUNCH();
}

int attribute_of_device(cudaDeviceAttr attribute) {
    int device = 0;
    int value = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

std::string cluster_constraint(const Problem& problem) {
    cudaFuncAttributes kernel{};
    CUDA_CHECK(cudaFuncGetAttributes(&kernel, cluster_per_row<Output::kSoftmax, true, 512, 32>));
    if (attribute_of_device(cudaDevAttrClusterLaunch) == 0 || kernel.ptxVersion < 90)
        return "needs clusters: compute capability 9.0, and code built for it";
    return at_most(kClusterCols, problem);
}

void run_cluster_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                         DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(cluster_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        launch_cluster_per_row<kOutput, kWhole>(in.data(), in.leading_dimension(), out.data(),
                                                out.leading_dimension(), in.rows(), in.cols(), stream);
    });
    CUDA_CHECK_LAUNCH();
}

// The blocks of whole_gpu that are resident at the same time: one per SM, by its launch bounds.
std::size_t blocks_of_gpu() {
    return static_cast<std::size_t>(attribute_of_device(cudaDevAttrMultiProcessorCount));
}

// The teams of such blocks that can each keep a row at the same time.
std::size_t teams_of_gpu(std::size_t cols) {
    return blocks_of_gpu() / course::ceil_div<std::size_t>(cols, kValuesOfSm);
}

std::string gpu_constraint(const Problem& problem) {
    if (attribute_of_device(cudaDevAttrCooperativeLaunch) == 0) return "needs cooperative launches";
    return at_most(blocks_of_gpu() * kValuesOfSm, problem);
}

void run_whole_gpu(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                   DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(gpu_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    // As many teams as can be resident; then every block belongs to a team, as far as that is
    // possible.
    const std::size_t teams = std::min(in.rows(), teams_of_gpu(in.cols()));
    const auto blocks_per_row = static_cast<int>(std::min(blocks_of_gpu() / teams, most_parts(in.cols())));
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        launch_whole_gpu<kOutput, kWhole>(in.data(), in.leading_dimension(), out.data(),
                                          out.leading_dimension(), in.rows(), static_cast<int>(in.cols()),
                                          teams, blocks_per_row, workspace.data(), stream);
    });
    CUDA_CHECK_LAUNCH();
}

void run_two_pass(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                  DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments("", in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        launch_two_pass<kOutput, kWhole>(in.data(), in.leading_dimension(), out.data(),
                                         out.leading_dimension(), in.rows(), in.cols(), workspace.data(),
                                         stream);
    });
    CUDA_CHECK_LAUNCH();
}

void run_chosen(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    chosen_for({in.rows(), in.cols(), output}).launcher(output, in, out, workspace, stream);
}

// Maximum, difference, exponential, sum and quotient: five operations per element.
course::Work work(const Problem& problem) {
    const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.cols);
    return {
        .bytes = 2 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = 5 * elements};
}

}  // namespace

std::string name(Output output) {
    return output == Output::kSoftmax ? "softmax" : "log_softmax";
}

std::size_t workspace_size(std::size_t rows, std::size_t cols) {
    return rows * most_parts(cols);
}

std::span<const Softmax> versions() {
    static const std::array<Softmax, 8> list = {{
        {"warp_per_row", "a warp keeps a row in registers", run_warp_per_row, work, warp_constraint},
        {"block_per_row", "a block keeps a row in registers", run_block_per_row, work, block_constraint},
        {"lanes_per_row", "a few lanes keep a row in registers", run_lanes_per_row, work, short_constraint},
        {"rows_in_shared", "many rows at once through shared memory", run_rows_in_shared, work,
         short_constraint},
        {"cluster_per_row", "a cluster of blocks keeps a row in registers", run_cluster_per_row, work,
         cluster_constraint},
        {"whole_gpu", "the registers of the whole GPU, one grid barrier", run_whole_gpu, work,
         gpu_constraint},
        {"two_pass", "any row, read twice, the second time backwards", run_two_pass, work},
        {"auto", "the version for this shape", run_chosen, work},
    }};
    return list;
}

// Up to so many rows without whole packs get a warp each: 16 warps for each of about 128 SMs, an
// estimate. In rows_in_shared a lane may have a whole row (93 x 93 took 11.7 µs on an H200).
constexpr std::size_t kFewRows = 2048;

// The fewest threads that can keep the row; reading the row twice is the last choice. Of the two
// for short rows, lanes_per_row is faster where few columns are outside whole packs, and few lanes
// have none.
const Softmax& chosen_for(const Problem& problem) {
    const auto can = [&](const char* name) -> const Softmax* {
        const Softmax& version = course::find_version(versions(), name);
        return version.cannot_run(problem).empty() ? &version : nullptr;
    };
    if (problem.cols <= kShortCols) {
        const std::size_t packs = course::ceil_div<std::size_t>(problem.cols, kWidth);
        const bool lanes =
            problem.cols > 100 || (problem.cols % kWidth == 0 && 4 * packs >= 3 * std::bit_ceil(packs));
        const bool whole_packs = problem.cols % kWidth == 0;
        if (problem.rows <= kFewRows && !whole_packs) return *can("warp_per_row");
        return *can(lanes ? "lanes_per_row" : "rows_in_shared");
    }
    // Longer rows take so many registers per lane that few warps are resident to hide latency.
    if (problem.cols <= 512) return *can("warp_per_row");
    if (const Softmax* block = can("block_per_row")) return *block;
    if (const Softmax* cluster = can("cluster_per_row")) return *cluster;
    // Several rounds, each with a grid barrier, cost more than reading the rows again.
    const Softmax* const gpu = can("whole_gpu");
    if (gpu != nullptr && problem.rows <= teams_of_gpu(problem.cols)) return *gpu;
    return *can("two_pass");
}

}  // namespace day21
