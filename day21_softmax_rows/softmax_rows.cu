// Day 21's launchers: argument checks, the choice of the kernel for a shape, the list of versions.
// The kernels are in softmax_rows.cuh and long_rows.cuh.
#include <algorithm>
#include <array>
#include <string>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "long_rows.cuh"
#include "softmax_rows.cuh"
#include "softmax_rows.hpp"

namespace day21 {
namespace {

using course::DeviceMatrix;
using course::DeviceSpan;
using course::require;

constexpr std::size_t kMostParts = 1024;  // of a row: few enough for a block to merge all of them quickly

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

bool rows_are_packs(std::size_t rows, const float* data, std::size_t leading_dimension) {
    return course::is_aligned(data, 16) && (rows == 1 || leading_dimension % 4 == 0);
}

// Calls run<output, width>(). The width is 4 where all rows of both matrices consist of whole packs
// of four floats, aligned to 16 bytes, and 1 otherwise.
template <class Run>
void with_constants(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out, Run run) {
    const bool packs = in.cols() % 4 == 0 && rows_are_packs(in.rows(), in.data(), in.leading_dimension()) &&
                       rows_are_packs(out.rows(), out.data(), out.leading_dimension());
    if (output == Output::kSoftmax) {
        packs ? run.template operator()<Output::kSoftmax, 4>()
              : run.template operator()<Output::kSoftmax, 1>();
    } else {
        packs ? run.template operator()<Output::kLogSoftmax, 4>()
              : run.template operator()<Output::kLogSoftmax, 1>();
    }
}

std::string at_most(std::size_t most, const Problem& problem) {
    return problem.cols <= most
               ? ""
               : "keeps at most " + std::to_string(most) + " columns, not " + std::to_string(problem.cols);
}

constexpr std::size_t kWarpCols = 1024;

std::string warp_constraint(const Problem& problem) {
    return at_most(kWarpCols, problem);
}

void launch_warp_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                         DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(warp_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        const auto launch = [&](auto kernel) {
            const unsigned blocks = course::blocks_for(in.rows(), kWarpsPerBlock);
            kernel<<<blocks, kRowThreads, 0, stream>>>(in.data(), in.leading_dimension(), out.data(),
                                                       out.leading_dimension(), in.rows(),
                                                       static_cast<int>(in.cols()));
            CUDA_CHECK_LAUNCH();
        };
        if (in.cols() <= 128) {
            launch(warp_per_row<kOutput, kWidth, 4>);
        } else if (in.cols() <= 256) {
            launch(warp_per_row<kOutput, kWidth, 8>);
        } else if (in.cols() <= 512) {
            launch(warp_per_row<kOutput, kWidth, 16>);
        } else {
            launch(warp_per_row<kOutput, kWidth, 32>);
        }
    });
}

constexpr std::size_t kBlockCols = 32768;

std::string block_constraint(const Problem& problem) {
    return at_most(kBlockCols, problem);
}

void launch_block_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                          DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(block_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        const auto launch = [&](auto kernel, int threads) {
            kernel<<<course::blocks_for(in.rows(), 1), threads, 0, stream>>>(
                in.data(), in.leading_dimension(), out.data(), out.leading_dimension(),
                static_cast<int>(in.cols()));
            CUDA_CHECK_LAUNCH();
        };
        if (in.cols() <= 1024) {
            launch(block_per_row<kOutput, kWidth, 64, 16>, 64);
        } else if (in.cols() <= 2048) {
            launch(block_per_row<kOutput, kWidth, 128, 16>, 128);
        } else if (in.cols() <= 4096) {
            launch(block_per_row<kOutput, kWidth, 256, 16>, 256);
        } else if (in.cols() <= 8192) {
            launch(block_per_row<kOutput, kWidth, 512, 16>, 512);
        } else if (in.cols() <= 16384) {
            launch(block_per_row<kOutput, kWidth, 1024, 16>, 1024);
        } else {
            launch(block_per_row<kOutput, kWidth, 1024, 32>, 1024);
        }
    });
}

constexpr std::size_t kMostBlocksOfCluster = 8;  // the portable limit
constexpr std::size_t kSmallClusterCols = kMostBlocksOfCluster * 256 * kValuesPerThread;
constexpr std::size_t kClusterCols = kMostBlocksOfCluster * 1024 * kValuesPerThread;

int attribute_of_device(cudaDeviceAttr attribute) {
    int device = 0;
    int value = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

std::string cluster_constraint(const Problem& problem) {
    cudaFuncAttributes kernel{};
    CUDA_CHECK(cudaFuncGetAttributes(&kernel, cluster_per_row<Output::kSoftmax, 4, 256>));
    if (attribute_of_device(cudaDevAttrClusterLaunch) == 0 || kernel.ptxVersion < 90)
        return "needs clusters: compute capability 9.0, and code built for it";
    return at_most(kClusterCols, problem);
}

// cols / blocks, rounded up to whole packs.
int slice_for(std::size_t cols, std::size_t blocks) {
    return static_cast<int>(4 * course::ceil_div(cols, 4 * blocks));
}

void launch_cluster_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                            DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(cluster_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        const auto launch = [&](auto kernel, unsigned threads) {
            std::size_t blocks = 2;
            while (blocks * threads * kValuesPerThread < in.cols())
                blocks *= 2;
            cudaLaunchAttribute attribute{};
            attribute.id = cudaLaunchAttributeClusterDimension;
            attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
            attribute.val.clusterDim.y = 1;
            attribute.val.clusterDim.z = 1;
            cudaLaunchConfig_t config{};
            config.gridDim = dim3(course::blocks_for(in.rows() * blocks, 1));
            config.blockDim = dim3(threads);
            config.stream = stream;
            config.attrs = &attribute;
            config.numAttrs = 1;
            CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, in.data(), in.leading_dimension(), out.data(),
                                          out.leading_dimension(), in.cols(), slice_for(in.cols(), blocks)));
        };
        if (in.cols() <= kSmallClusterCols) {
            launch(cluster_per_row<kOutput, kWidth, 256>, 256);
        } else {
            launch(cluster_per_row<kOutput, kWidth, 1024>, 1024);
        }
    });
}

// The blocks of whole_gpu that are resident at the same time: one per SM, by its launch bounds.
std::size_t blocks_of_gpu() {
    return static_cast<std::size_t>(attribute_of_device(cudaDevAttrMultiProcessorCount));
}

// The teams of such blocks that can each keep a row at the same time.
std::size_t teams_of_gpu(std::size_t cols) {
    return blocks_of_gpu() / course::ceil_div<std::size_t>(cols, kGpuThreads * kValuesPerThread);
}

std::string gpu_constraint(const Problem& problem) {
    if (attribute_of_device(cudaDevAttrCooperativeLaunch) == 0) return "needs cooperative launches";
    return at_most(blocks_of_gpu() * kGpuThreads * kValuesPerThread, problem);
}

void launch_whole_gpu(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                      DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(gpu_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    // As many teams as can be resident; then every block belongs to a team, as far as that is
    // possible.
    const std::size_t teams = std::min(in.rows(), teams_of_gpu(in.cols()));
    auto blocks_per_row = static_cast<int>(std::min(blocks_of_gpu() / teams, most_parts(in.cols())));
    int slice = slice_for(in.cols(), static_cast<std::size_t>(blocks_per_row));
    const auto grid = static_cast<unsigned>(teams) * static_cast<unsigned>(blocks_per_row);
    const float* in_data = in.data();
    float* out_data = out.data();
    std::size_t in_step = in.leading_dimension();
    std::size_t out_step = out.leading_dimension();
    std::size_t rows = in.rows();
    std::size_t cols = in.cols();
    MaxSum* parts = workspace.data();
    void* arguments[] = {&in_data, &in_step,        &out_data, &out_step, &rows,
                         &cols,    &blocks_per_row, &slice,    &parts};
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        CUDA_CHECK(cudaLaunchCooperativeKernel(whole_gpu<kOutput, kWidth>, dim3(grid), dim3(kGpuThreads),
                                               arguments, 0, stream));
    });
}

void launch_two_pass(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                     DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments("", in, out, workspace);
    if (is_empty(in)) return;
    const std::size_t chunks = course::ceil_div<std::size_t>(in.cols(), kChunk);
    const std::size_t chunks_per_part = course::ceil_div(chunks, kMostParts);
    const std::size_t parts = course::ceil_div(chunks, chunks_per_part);
    const unsigned blocks = course::blocks_for(in.rows() * parts, 1);
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        find_parts<kWidth><<<blocks, kPassThreads, 0, stream>>>(
            in.data(), in.leading_dimension(), in.cols(), static_cast<unsigned>(parts),
            static_cast<int>(chunks_per_part), workspace.data());
        CUDA_CHECK_LAUNCH();
        normalise_parts<kOutput, kWidth><<<blocks, kPassThreads, 0, stream>>>(
            in.data(), in.leading_dimension(), out.data(), out.leading_dimension(), in.cols(),
            static_cast<unsigned>(parts), static_cast<int>(chunks_per_part), workspace.data());
        CUDA_CHECK_LAUNCH();
    });
}

void launch_chosen(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
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
    static const std::array<Softmax, 6> list = {{
        {"warp_per_row", "a warp keeps a row in registers", launch_warp_per_row, work, warp_constraint},
        {"block_per_row", "a block keeps a row in registers", launch_block_per_row, work, block_constraint},
        {"cluster_per_row", "a cluster of blocks keeps a row in registers", launch_cluster_per_row, work,
         cluster_constraint},
        {"whole_gpu", "the registers of the whole GPU, one grid barrier", launch_whole_gpu, work,
         gpu_constraint},
        {"two_pass", "any row, read twice, the second time backwards", launch_two_pass, work},
        {"auto", "the version for this shape", launch_chosen, work},
    }};
    return list;
}

// The fewest threads that can keep the row; reading the row twice is the last choice.
const Softmax& chosen_for(const Problem& problem) {
    const auto can = [&](const char* name) -> const Softmax* {
        const Softmax& version = course::find_version(versions(), name);
        return version.cannot_run(problem).empty() ? &version : nullptr;
    };
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
