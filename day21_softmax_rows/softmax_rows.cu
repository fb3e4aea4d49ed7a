// Day 21's launchers: argument checks, the choice of the kernel for a shape, the list of versions.
// The kernels are in softmax_rows.cuh, short_rows.cuh and long_rows.cuh.
#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "long_rows.cuh"
#include "short_rows.cuh"
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

constexpr std::size_t kWarpCols = 1024;

std::string warp_constraint(const Problem& problem) {
    return at_most(kWarpCols, problem);
}

void launch_warp_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                         DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(warp_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        const auto launch = [&](auto kernel) {
            const unsigned blocks = course::blocks_for(in.rows(), kWarpsPerBlock);
            kernel<<<blocks, kRowThreads, 0, stream>>>(in.data(), in.leading_dimension(), out.data(),
                                                       out.leading_dimension(), in.rows(),
                                                       static_cast<int>(in.cols()));
            CUDA_CHECK_LAUNCH();
        };
        const std::size_t values = course::ceil_div<std::size_t>(in.cols(), course::kWarpSize);
        if (values <= 4) {
            launch(warp_per_row<kOutput, kWhole, 4>);
        } else if (values <= 8) {
            launch(warp_per_row<kOutput, kWhole, 8>);
        } else if (values <= 16) {
            launch(warp_per_row<kOutput, kWhole, 16>);
        } else if (values <= 24) {
            launch(warp_per_row<kOutput, kWhole, 24>);
        } else {
            launch(warp_per_row<kOutput, kWhole, 32>);
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
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        const auto launch = [&](auto kernel, int threads) {
            kernel<<<course::blocks_for(in.rows(), 1), threads, 0, stream>>>(
                in.data(), in.leading_dimension(), out.data(), out.leading_dimension(),
                static_cast<int>(in.cols()));
            CUDA_CHECK_LAUNCH();
        };
        const std::size_t cols = in.cols();
        if (cols <= 1024) {
            launch(block_per_row<kOutput, kWhole, 64, 16>, 64);
        } else if (cols <= 2048) {
            launch(block_per_row<kOutput, kWhole, 128, 16>, 128);
        } else if (cols <= 4096) {
            launch(block_per_row<kOutput, kWhole, 256, 16>, 256);
        } else if (cols <= 8192) {
            launch(block_per_row<kOutput, kWhole, 512, 16>, 512);
        } else if (cols <= 16384) {
            launch(block_per_row<kOutput, kWhole, 1024, 16>, 1024);
        } else if (cols <= 24576) {
            launch(block_per_row<kOutput, kWhole, 1024, 24>, 1024);
        } else {
            launch(block_per_row<kOutput, kWhole, 1024, 32>, 1024);
        }
    });
}

// Short rows: see short_rows.cuh.
constexpr std::size_t kShortCols = 192;

std::string short_constraint(const Problem& problem) {
    return at_most(kShortCols, problem);
}

void launch_lanes_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                          DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(short_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        const auto launch = [&]<int kLanes, int kPacks>() {
            const unsigned blocks = course::blocks_for(in.rows(), kRowThreads / kLanes * kRowsOfGroup);
            lanes_per_row<kOutput, kWhole, kLanes, kPacks><<<blocks, kRowThreads, 0, stream>>>(
                in.data(), in.leading_dimension(), out.data(), out.leading_dimension(), in.rows(),
                static_cast<int>(in.cols()));
            CUDA_CHECK_LAUNCH();
        };
        const std::size_t packs = course::ceil_div<std::size_t>(in.cols(), kWidth);
        if (packs <= 1) {
            launch.template operator()<1, 1>();
        } else if (packs <= 2) {
            launch.template operator()<2, 1>();
        } else if (packs <= 4) {
            launch.template operator()<4, 1>();
        } else if (packs <= 8) {
            launch.template operator()<8, 1>();
        } else if (packs <= 16) {
            launch.template operator()<16, 1>();
        } else if (packs <= 32) {
            launch.template operator()<16, 2>();
        } else {
            launch.template operator()<16, 3>();
        }
    });
}

bool is_contiguous(DeviceMatrix<const float> matrix) {
    return matrix.rows() <= 1 || matrix.leading_dimension() == matrix.cols();
}

void launch_rows_in_shared(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                           DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    // Gaps between the rows would be copied, too.
    if (!is_contiguous(in) || !is_contiguous(out))
        return launch_lanes_per_row(output, in, out, workspace, stream);
    check_arguments(short_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    const auto cols = static_cast<int>(in.cols());
    with_constants(output, in, out, [&]<Output kOutput, bool>() {
        const auto launch = [&]<int kLanes, int kOwn = 0>() {
            constexpr int kRowsAtOnce = course::kWarpSize / kLanes;
            const int rows_of_warp = std::max(1, kTile / (cols * kRowsAtOnce)) * kRowsAtOnce;
            const std::size_t shared = sizeof(float) * kTileWarps * tile_size(rows_of_warp * cols);
            const auto kernel = rows_in_shared<kOutput, kLanes, kOwn>;
            course::allow_shared_bytes(kernel, shared);
            const unsigned blocks = course::blocks_for(in.rows(), kTileWarps * rows_of_warp);
            kernel<<<blocks, kTileThreads, shared, stream>>>(in.data(), out.data(), in.rows(), cols,
                                                             rows_of_warp);
            CUDA_CHECK_LAUNCH();
        };
        switch (cols) {
            case 1:
                return launch.template operator()<1, 1>();
            case 2:
                return launch.template operator()<2, 1>();
            case 3:
                return launch.template operator()<1, 3>();
            case 6:
                return launch.template operator()<2, 3>();
        }
        switch (std::min(cols & -cols, course::kWarpSize)) {  // the largest power of two that divides cols
            case 1:
                return launch.template operator()<1>();
            case 2:
                return launch.template operator()<2>();
            case 4:
                return launch.template operator()<4>();
            case 8:
                return launch.template operator()<8>();
            case 16:
                return launch.template operator()<16>();
            default:
                return launch.template operator()<32>();
        }
    });
}

constexpr std::size_t kClusterCols = std::size_t{kMostBlocksOfCluster} * kValuesOfSm;

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

// The packs of a slice, where `blocks` share a row.
int packs_of_slice(std::size_t cols, std::size_t blocks) {
    return static_cast<int>(course::ceil_div(cols, kWidth * blocks));
}

void launch_cluster_per_row(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                            DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(cluster_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        const auto launch = [&](auto kernel, unsigned threads, std::size_t of_block) {
            const std::size_t blocks = std::max<std::size_t>(2, course::ceil_div(in.cols(), of_block));
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
                                          out.leading_dimension(), in.cols(),
                                          packs_of_slice(in.cols(), blocks)));
        };
        if (in.cols() <= kClusterCols / 4) {
            launch(cluster_per_row<kOutput, kWhole, 256, 32>, 256, kValuesOfSm / 4);
        } else if (in.cols() <= kClusterCols / 2) {
            launch(cluster_per_row<kOutput, kWhole, 512, 32>, 512, kValuesOfSm / 2);
        } else {
            launch(cluster_per_row<kOutput, kWhole, 1024, 32>, 1024, kValuesOfSm);
        }
    });
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

void launch_whole_gpu(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                      DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(gpu_constraint({in.rows(), in.cols(), output}), in, out, workspace);
    if (is_empty(in)) return;
    // As many teams as can be resident; then every block belongs to a team, as far as that is
    // possible.
    const std::size_t teams = std::min(in.rows(), teams_of_gpu(in.cols()));
    auto blocks_per_row = static_cast<int>(std::min(blocks_of_gpu() / teams, most_parts(in.cols())));
    int packs = packs_of_slice(in.cols(), static_cast<std::size_t>(blocks_per_row));
    const auto grid = static_cast<unsigned>(teams) * static_cast<unsigned>(blocks_per_row);
    const float* in_data = in.data();
    float* out_data = out.data();
    std::size_t in_step = in.leading_dimension();
    std::size_t out_step = out.leading_dimension();
    std::size_t rows = in.rows();
    auto cols = static_cast<int>(in.cols());
    MaxSum* parts = workspace.data();
    void* arguments[] = {&in_data, &in_step,        &out_data, &out_step, &rows,
                         &cols,    &blocks_per_row, &packs,    &parts};
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        CUDA_CHECK(cudaLaunchCooperativeKernel(whole_gpu<kOutput, kWhole>, dim3(grid), dim3(kGpuThreads),
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
    with_constants(output, in, out, [&]<Output kOutput, bool kWhole>() {
        find_parts<kWhole><<<blocks, kPassThreads, 0, stream>>>(
            in.data(), in.leading_dimension(), static_cast<std::ptrdiff_t>(in.cols()),
            static_cast<unsigned>(parts), static_cast<int>(chunks_per_part), workspace.data());
        CUDA_CHECK_LAUNCH();
        normalise_parts<kOutput, kWhole><<<blocks, kPassThreads, 0, stream>>>(
            in.data(), in.leading_dimension(), out.data(), out.leading_dimension(),
            static_cast<std::ptrdiff_t>(in.cols()), static_cast<unsigned>(parts),
            static_cast<int>(chunks_per_part), workspace.data());
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
    static const std::array<Softmax, 8> list = {{
        {"warp_per_row", "a warp keeps a row in registers", launch_warp_per_row, work, warp_constraint},
        {"block_per_row", "a block keeps a row in registers", launch_block_per_row, work, block_constraint},
        {"lanes_per_row", "a few lanes keep a row in registers", launch_lanes_per_row, work,
         short_constraint},
        {"rows_in_shared", "many rows at once through shared memory", launch_rows_in_shared, work,
         short_constraint},
        {"cluster_per_row", "a cluster of blocks keeps a row in registers", launch_cluster_per_row, work,
         cluster_constraint},
        {"whole_gpu", "the registers of the whole GPU, one grid barrier", launch_whole_gpu, work,
         gpu_constraint},
        {"two_pass", "any row, read twice, the second time backwards", launch_two_pass, work},
        {"auto", "the version for this shape", launch_chosen, work},
    }};
    return list;
}

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
