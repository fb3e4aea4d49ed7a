// Day 20, second part: softmax of every row of a matrix.                                     PMPP chapter 10
//
// A row is read from memory once, kept in registers while its maximum and its sum are found, and written once; only two_pass
// reads it again. The versions differ in who keeps a row:
//
//   version            a row is kept by                         columns                  threads meet
//   warp_per_row       32 threads                               up to 1024               by shuffles
//   block_per_row      64 to 1024 threads                       up to 32768              in shared memory
//   cluster_per_row    2 to 8 blocks                            up to 262144             in each other's shared memory
//   whole_gpu          all blocks that the GPU can hold         some millions            in memory, once, at a grid barrier
//   two_pass           nobody: it is read twice                 any                      between two kernels
//
//   ./course run day20 --size 4096x1024
//   ./course run day20 --variant two_pass --size 16x1048576
#include <cooperative_groups.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "softmax_device.cuh"
#include "softmax_rows.hpp"

namespace day20 {
namespace {

namespace cg = cooperative_groups;

// Row r of a matrix begins at data + r * leading_dimension. Kernels take rows as such a pair.
template <class T>
struct Rows {
    T* data;
    std::size_t leading_dimension;

    explicit Rows(DeviceMatrix<T> matrix)
        : data(matrix.data()), leading_dimension(matrix.leading_dimension()) {}

    __device__ T* operator[](std::size_t row) const { return data + row * leading_dimension; }
};

// A long row is cut into slices of `slice` columns, a multiple of 4 so that packs stay aligned. The last one may be short, and
// slices beyond it empty.
struct Slice {
    std::size_t begin;
    int count;

    __device__ Slice(std::size_t cols, int slice, std::size_t index)
        : begin(::min(cols, index * static_cast<std::size_t>(slice))),
          count(static_cast<int>(::min(static_cast<std::size_t>(slice), cols - begin))) {}
};

// --- Kernels ---------------------------------------------------------------------------------------------------------

constexpr int kWarpsPerBlock = 8;

// Idea: a warp keeps its row in registers and meets in shuffles.
// Cost removed: every read but the first; all barriers.
// Still limits it: memory. 32 registers of data in each of 32 threads are 1024 columns.
template <Output kOutput, int kWidth, int kValues>
__global__ void __launch_bounds__(kWarpsPerBlock* course::kWarpSize)
    warp_per_row(Rows<const float> in, Rows<float> out, std::size_t rows, int cols) {
    const int lane = static_cast<int>(threadIdx.x) % course::kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / course::kWarpSize;
    const std::size_t row = static_cast<std::size_t>(blockIdx.x) * kWarpsPerBlock + warp;
    if (row >= rows) return;

    Share<course::kWarpSize, kValues, kWidth> share;
    share.load(in[row], cols, lane);
    const MaxSum whole_row = share.template part_of_warp<kOutput>();
    share.store(out[row], cols, lane, KeptNormaliser<kOutput>(whole_row.max, whole_row));
}

// Idea: the same with a block for a row. Each warp finds maximum and sum of its part; they meet in shared memory, once.
// Cost removed: the limit of 1024 columns.
// Still limits it: at 32768 columns one row fills the registers of a multiprocessor, and nobody works while it waits.
template <Output kOutput, int kWidth, int kThreads, int kValues>
__global__ void __launch_bounds__(kThreads) block_per_row(Rows<const float> in, Rows<float> out, int cols) {
    const auto thread = static_cast<int>(threadIdx.x);
    Share<kThreads, kValues, kWidth> share;
    share.load(in[blockIdx.x], cols, thread);
    const MaxSum part = share.template part_of_warp<kOutput>();
    const MaxSum whole_row = block_merge<kThreads>(part);
    share.store(out[blockIdx.x], cols, thread, KeptNormaliser<kOutput>(part.max, whole_row));
}

constexpr int kValuesPerThread = 32;

// Idea: a cluster of blocks, on neighbouring multiprocessors, for a row. Each block finds maximum and sum of its slice and
// reads those of the others from their shared memory.
// Cost removed: the limit of 32768 columns.
// Still limits it: memory. A cluster has at most 8 blocks.
template <Output kOutput, int kWidth, int kThreads>
__global__ void __launch_bounds__(kThreads)
    cluster_per_row(Rows<const float> in, Rows<float> out, std::size_t cols, int slice) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // older GPUs have no clusters, and nvcc none for them
    __shared__ MaxSum of_block;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned blocks = cluster.num_blocks();
    const std::size_t row = blockIdx.x / blocks;
    const Slice mine(cols, slice, cluster.block_rank());
    const auto thread = static_cast<int>(threadIdx.x);

    Share<kThreads, kValuesPerThread, kWidth> share;
    share.load(in[row] + mine.begin, mine.count, thread);
    const MaxSum part = share.template part_of_warp<kOutput>();
    const MaxSum whole_slice = block_merge<kThreads>(part);
    if (thread == 0) of_block = whole_slice;
    cluster.sync();
    const unsigned lane = threadIdx.x % course::kWarpSize;
    const MaxSum whole_row =
        warp_merge(lane < blocks ? *cluster.map_shared_rank(&of_block, lane) : nothing());
    auto read = cluster.barrier_arrive();
    share.store(out[row] + mine.begin, mine.count, thread, KeptNormaliser<kOutput>(part.max, whole_row));
    cluster.barrier_wait(std::move(read));  // this block's shared memory must outlive the reads of the others
#endif
}

constexpr int kGpuThreads = 1024;

// Idea: the registers of the whole GPU hold the row. Blocks work in teams of `blocks_per_row`, a row each at a time, and all
// meet once per round at a barrier for the grid; a cooperative launch makes sure that all blocks run at the same time.
// Cost removed: the second read.
// Still limits it: the GPU falls silent at each barrier.
template <Output kOutput, int kWidth>
__global__ void __launch_bounds__(kGpuThreads, 1)
    whole_gpu(Rows<const float> in, Rows<float> out, std::size_t rows, std::size_t cols, int blocks_per_row,
              int slice, MaxSum* parts) {
    const cg::grid_group grid = cg::this_grid();
    const auto thread = static_cast<int>(threadIdx.x);
    const unsigned team = blockIdx.x / blocks_per_row;
    const unsigned member = blockIdx.x % blocks_per_row;
    const unsigned teams = gridDim.x / blocks_per_row;
    const Slice mine(cols, slice, member);

    Share<kGpuThreads, kValuesPerThread, kWidth> share;
    for (std::size_t round = 0; round < rows; round += teams) {
        const std::size_t row = round + team;
        MaxSum* const parts_of_row = parts + row * blocks_per_row;
        MaxSum part = nothing();
        if (row < rows) {
            share.load(in[row] + mine.begin, mine.count, thread);
            part = share.template part_of_warp<kOutput>();
            const MaxSum whole_slice = block_merge<kGpuThreads>(part);
            if (thread == 0) parts_of_row[member] = whole_slice;
        }
        grid.sync();  // also by teams that have no row left
        if (row < rows) {
            const MaxSum whole_row = block_merge<kGpuThreads>(parts_of_row, blocks_per_row);
            share.store(out[row] + mine.begin, mine.count, thread,
                        KeptNormaliser<kOutput>(part.max, whole_row));
            __syncthreads();  // the next round's block_merge writes what slow warps may still be reading
        }
    }
}

constexpr int kPassThreads = 256;
template <int kWidth>
using Chunk = Share<kPassThreads, kValuesPerThread, kWidth>;
constexpr int kChunk = Chunk<1>::kCapacity;

// A part is chunks_per_part chunks of a row, and has a block to itself in both passes; all parts of a row follow one another.
// Columns of chunk i of part p: (p * chunks_per_part + i) * kChunk and on.

// Idea: a row of any length in two passes. First each part's maximum and sum, a chunk in registers at a time.
// Cost removed: one exponential per element to bring the sum to a new maximum; here it is one per chunk and thread.
// Still limits it: the data is read a second time.
template <int kWidth>
__global__ void __launch_bounds__(kPassThreads)
    find_parts(Rows<const float> in, std::size_t cols, unsigned parts_per_row, int chunks_per_part,
               MaxSum* parts) {
    const float* const row = in[blockIdx.x / parts_per_row];
    const std::size_t part = blockIdx.x % parts_per_row;
    MaxSum mine = nothing();
    for (int i = 0; i < chunks_per_part; ++i) {
        const Slice slice(cols, kChunk, part * chunks_per_part + i);
        Chunk<kWidth> chunk;
        chunk.load(row + slice.begin, slice.count, static_cast<int>(threadIdx.x));
        const float max = chunk.max();
        mine = merge(mine, {max, chunk.template exponentiate<Output::kLogSoftmax>(shift_of(max))});
    }
    mine = block_merge<kPassThreads>(warp_merge(mine));
    if (threadIdx.x == 0) parts[blockIdx.x] = mine;
}

// Idea: last parts first. What find_parts read last is still in the L2 cache, as much of it as fits.
// Cost removed: a good part of the second read.
// Still limits it: memory, for the rest of that read.
template <Output kOutput, int kWidth>
__global__ void __launch_bounds__(kPassThreads)
    normalise_parts(Rows<const float> in, Rows<float> out, std::size_t cols, unsigned parts_per_row,
                    int chunks_per_part, const MaxSum* parts) {
    const unsigned block = gridDim.x - 1 - blockIdx.x;
    const std::size_t row = block / parts_per_row;
    const std::size_t part = block % parts_per_row;
    const auto thread = static_cast<int>(threadIdx.x);

    Chunk<kWidth> chunk;
    Slice slice(cols, kChunk, (part + 1) * chunks_per_part - 1);
    chunk.load(in[row] + slice.begin, slice.count, thread);  // on its way while the parts are taken together
    const Normaliser<kOutput> normaliser(
        block_merge<kPassThreads>(parts + row * parts_per_row, static_cast<int>(parts_per_row)));
    for (int i = chunks_per_part - 1;; --i) {
        chunk.store(out[row] + slice.begin, slice.count, thread, normaliser);
        if (i == 0) break;
        slice = Slice(cols, kChunk, part * chunks_per_part + i - 1);
        chunk.load(in[row] + slice.begin, slice.count, thread);
    }
}

// --- Launchers -------------------------------------------------------------------------------------------------------

bool rows_are_packs(std::size_t rows, const float* data, std::size_t leading_dimension) {
    return course::is_aligned(data, 16) && (rows == 1 || leading_dimension % 4 == 0);
}

// Calls run<output, width>(): packs of four floats where every row of both matrices consists of whole, aligned ones.
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
    require_possible(warp_constraint({in.rows(), in.cols(), output}));
    if (!check_arguments(in, out, workspace)) return;
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        const auto launch = [&](auto kernel) {
            const unsigned blocks = course::blocks_for(in.rows(), kWarpsPerBlock);
            kernel<<<blocks, kWarpsPerBlock * course::kWarpSize, 0, stream>>>(
                Rows<const float>(in), Rows<float>(out), in.rows(), static_cast<int>(in.cols()));
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
    require_possible(block_constraint({in.rows(), in.cols(), output}));
    if (!check_arguments(in, out, workspace)) return;
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        const auto launch = [&](auto kernel, int threads) {
            kernel<<<course::blocks_for(in.rows(), 1), threads, 0, stream>>>(
                Rows<const float>(in), Rows<float>(out), static_cast<int>(in.cols()));
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

constexpr std::size_t kMostBlocksOfCluster = 8;  // that every GPU with clusters can run
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
    require_possible(cluster_constraint({in.rows(), in.cols(), output}));
    if (!check_arguments(in, out, workspace)) return;
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
            CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Rows<const float>(in), Rows<float>(out), in.cols(),
                                          slice_for(in.cols(), blocks)));
        };
        if (in.cols() <= kSmallClusterCols) {
            launch(cluster_per_row<kOutput, kWidth, 256>, 256);
        } else {
            launch(cluster_per_row<kOutput, kWidth, 1024>, 1024);
        }
    });
}

// How many blocks of whole_gpu run at the same time: one on each multiprocessor, as its launch bounds promise.
std::size_t blocks_of_gpu() {
    return static_cast<std::size_t>(attribute_of_device(cudaDevAttrMultiProcessorCount));
}

// Teams of them that can keep a row each, at the same time.
std::size_t teams_of_gpu(std::size_t cols) {
    return blocks_of_gpu() / course::ceil_div<std::size_t>(cols, kGpuThreads * kValuesPerThread);
}

std::string gpu_constraint(const Problem& problem) {
    if (attribute_of_device(cudaDevAttrCooperativeLaunch) == 0) return "needs cooperative launches";
    return at_most(blocks_of_gpu() * kGpuThreads * kValuesPerThread, problem);
}

void launch_whole_gpu(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                      DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    require_possible(gpu_constraint({in.rows(), in.cols(), output}));
    if (!check_arguments(in, out, workspace)) return;
    // As many teams as there is room for, and all blocks in one of them.
    const std::size_t teams = std::min(in.rows(), teams_of_gpu(in.cols()));
    auto blocks_per_row = static_cast<int>(std::min(blocks_of_gpu() / teams, most_parts(in.cols())));
    int slice = slice_for(in.cols(), static_cast<std::size_t>(blocks_per_row));
    const auto grid = static_cast<unsigned>(teams) * static_cast<unsigned>(blocks_per_row);
    Rows<const float> in_rows(in);
    Rows<float> out_rows(out);
    std::size_t rows = in.rows();
    std::size_t cols = in.cols();
    MaxSum* parts = workspace.data();
    void* arguments[] = {&in_rows, &out_rows, &rows, &cols, &blocks_per_row, &slice, &parts};
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        CUDA_CHECK(cudaLaunchCooperativeKernel(whole_gpu<kOutput, kWidth>, dim3(grid), dim3(kGpuThreads),
                                               arguments, 0, stream));
    });
}

void launch_two_pass(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                     DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    if (!check_arguments(in, out, workspace)) return;
    const std::size_t chunks = course::ceil_div<std::size_t>(in.cols(), kChunk);
    const std::size_t chunks_per_part = course::ceil_div(chunks, kMaxParts);
    const std::size_t parts = course::ceil_div(chunks, chunks_per_part);
    const unsigned blocks = course::blocks_for(in.rows() * parts, 1);
    with_constants(output, in, out, [&]<Output kOutput, int kWidth>() {
        find_parts<kWidth><<<blocks, kPassThreads, 0, stream>>>(
            Rows<const float>(in), in.cols(), static_cast<unsigned>(parts), static_cast<int>(chunks_per_part),
            workspace.data());
        CUDA_CHECK_LAUNCH();
        normalise_parts<kOutput, kWidth><<<blocks, kPassThreads, 0, stream>>>(
            Rows<const float>(in), Rows<float>(out), in.cols(), static_cast<unsigned>(parts),
            static_cast<int>(chunks_per_part), workspace.data());
        CUDA_CHECK_LAUNCH();
    });
}

}  // namespace

// --- The list ----------------------------------------------------------------------------------------------------------

std::span<const Softmax> row_variants() {
    static const std::array<Softmax, 5> list = {{
        {"warp_per_row", "a warp keeps a row in registers", launch_warp_per_row, work, warp_constraint},
        {"block_per_row", "a block keeps a row in registers", launch_block_per_row, work, block_constraint},
        {"cluster_per_row", "a cluster of blocks keeps a row in registers", launch_cluster_per_row, work,
         cluster_constraint},
        {"whole_gpu", "the registers of the whole GPU, one grid barrier", launch_whole_gpu, work,
         gpu_constraint},
        {"two_pass", "any row, read twice, the second time backwards", launch_two_pass, work},
    }};
    return list;
}

// The fewest threads that can keep the row; a row that is read twice last of all.
const Softmax& choose_row_variant(const Problem& problem) {
    const auto can = [&](const char* version) -> const Softmax* {
        const Softmax& variant = course::find_variant(row_variants(), version);
        return variant.cannot_run(problem).empty() ? &variant : nullptr;
    };
    // A warp of its own is best for a row of up to 512 columns. Longer ones would leave it few other warps to wait with.
    if (problem.cols <= 512) return *can("warp_per_row");
    if (const Softmax* block = can("block_per_row")) return *block;
    if (const Softmax* cluster = can("cluster_per_row")) return *cluster;
    // A grid barrier for each few rows costs more than reading them again.
    const Softmax* const gpu = can("whole_gpu");
    if (gpu != nullptr && problem.rows <= teams_of_gpu(problem.cols)) return *gpu;
    return *can("two_pass");
}

}  // namespace day20
