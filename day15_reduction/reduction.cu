// Day 15: reduction, n numbers become one.                                                        PMPP chapter 10
//
//   version         what is new                                           what limits it
//   interleaved     a tree, log2 of the additions deep                    the working threads are spread over all warps
//   sequential      the working threads are neighbours                    every level goes through global memory
//   shared_memory   the tree in shared memory                             a tree and an atomic for every 256 elements
//   coarsened       a thread first adds up many elements by itself        barriers of the tree; 4 bytes a load
//   shuffle         warps reduce in registers, one barrier                one load under way per thread
//   vectorised      16-byte loads, eight under way per thread             a second launch, to set the result first
//   single_pass     the block that is done last finishes: one launch      memory
//   deterministic   a fixed order of additions, whatever the grid         memory
//
// Each element is read once and that is all the memory traffic there must be: n * sizeof(element) / (read bandwidth) is the
// best possible time. Every version takes any length: a block loops over pieces of the input, and the blocks' results
// come together by an atomic operation on the result (the last two: through a workspace).
//
//   ./course run day15                       sums of floats: all versions, verified and timed, and their errors
//   ./course run day15 --variant single_pass --size 268435456
#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "combine.cuh"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "common/device/warp.cuh"
#include "reduction.hpp"

namespace day15 {
namespace {

using course::DeviceSpan;
using course::kWarpSize;
using course::Pack;
using course::warp_reduce;

template <class Op>
using Element = typename Op::Element;
template <class Op>
using Result = typename Op::Result;

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / kWarpSize;
static_assert(kWarps <= kWarpSize, "block_reduce: one warp must be able to take a value of every warp");

constexpr int kLoads = 8;        // packs that a thread asks for before it uses the first
constexpr int kBlocksPerSm = 4;  // of those kernels: 64 registers a thread, enough for the packs
template <class T>
constexpr int kPack = 16 / sizeof(T);  // elements in 16 bytes
template <class T>
constexpr int kTile = kBlock* kLoads* kPack<T>;  // elements that a block takes in one go

// --- Device helpers --------------------------------------------------------------------------------------------------

__device__ std::size_t global_thread() {
    return static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
}
__device__ std::size_t grid_threads() {
    return static_cast<std::size_t>(gridDim.x) * kBlock;
}

// Element i, or behind the end the value that changes nothing.
template <class Op>
__device__ Element<Op> element_or_identity(const Element<Op>* in, std::size_t n, std::size_t i) {
    return i < n ? in[i] : static_cast<Element<Op>>(Op::identity());
}

// The tree over kBlock values with neighbouring threads at work; values[0] is the result, for thread 0.
template <class Op>
__device__ void tree_reduce(Result<Op>* values) {
    for (unsigned stride = kBlock / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) {
            values[threadIdx.x] = Op{}(values[threadIdx.x], values[threadIdx.x + stride]);
        }
    }
}

// op over one value of each thread; the result is thread 0's. First each warp by itself, then the first warp over the warps.
template <class Op>
__device__ Result<Op> block_reduce(Result<Op> value) {
    __shared__ Result<Op> of_warp[kWarps];
    const unsigned lane = threadIdx.x % kWarpSize;
    const unsigned warp = threadIdx.x / kWarpSize;
    value = warp_reduce(value, Op{});
    __syncthreads();  // the first warp has read what an earlier call left
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) value = warp_reduce(lane < kWarps ? of_warp[lane] : Op::identity(), Op{});
    return value;
}

// Adds what this thread takes from one tile: kLoads packs, asked for one after the other and used afterwards.
// Pack k of thread t begins kPack * (k * kBlock + t) elements into the tile, so a warp's load is 512 bytes in a row.
// `aligned` is only how elements are fetched: which thread takes which, and in which order, is the same.
template <class Op>
__device__ void add_tile(Result<Op> (&sums)[kPack<Element<Op>>], const Element<Op>* in, std::size_t n,
                         std::size_t tile, bool aligned) {
    using T = Element<Op>;
    const std::size_t first = tile * kTile<T> + threadIdx.x * kPack<T>;
    Pack<T, kPack<T>> packs[kLoads];
    if (aligned && (tile + 1) * kTile<T> <= n) {
#pragma unroll
        for (int k = 0; k < kLoads; ++k)
            packs[k] = Pack<T, kPack<T>>::load(in + first + k * kBlock * kPack<T>);
    } else {
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
#pragma unroll
            for (int j = 0; j < kPack<T>; ++j)
                packs[k].value[j] = element_or_identity<Op>(in, n, first + k * kBlock * kPack<T> + j);
        }
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
#pragma unroll
        for (int j = 0; j < kPack<T>; ++j)
            sums[j] = Op{}(sums[j], static_cast<Result<Op>>(packs[k].value[j]));
    }
}

template <class Op>
__host__ __device__ std::size_t tiles_of(std::size_t n) {
    return course::ceil_div<std::size_t>(n, kTile<Element<Op>>);
}

// op over the tiles first, first + step, ... below `end`, for the whole block; the result is thread 0's.
// A thread keeps a sum for each place in a pack: additions that do not wait for one another.
template <class Op>
__device__ Result<Op> reduce_tiles(const Element<Op>* in, std::size_t n, std::size_t first, std::size_t end,
                                   std::size_t step) {
    using T = Element<Op>;
    const bool aligned = reinterpret_cast<std::uintptr_t>(in) % sizeof(Pack<T, kPack<T>>) == 0;
    Result<Op> sums[kPack<T>];
#pragma unroll
    for (int j = 0; j < kPack<T>; ++j)
        sums[j] = Op::identity();
    for (std::size_t tile = first; tile < end; tile += step)
        add_tile<Op>(sums, in, n, tile, aligned);
#pragma unroll
    for (int j = 1; j < kPack<T>; ++j)
        sums[0] = Op{}(sums[0], sums[j]);
    return block_reduce<Op>(sums[0]);
}

// Called by all threads of each block, after its thread 0 has written the block's results: true in the block that is last.
// The fences keep the order: results before ticket, and in the last block ticket before the results of the others.
// atomicInc returns to 0 after the last ticket, so the next reduction finds it as this one did.
__device__ bool is_last_block(unsigned* ticket) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

// The last block reduces the results of all, in an order that depends on `count` alone.
template <class Op>
__device__ void finish(const Result<Op>* results, unsigned count, Result<Op>* out) {
    Result<Op> value = Op::identity();
    for (unsigned first = threadIdx.x; first < count; first += kLoads * kBlock) {
        Result<Op> loaded[kLoads];
#pragma unroll
        for (unsigned k = 0; k < kLoads; ++k)
            loaded[k] = first + k * kBlock < count ? results[first + k * kBlock] : Op::identity();
#pragma unroll
        for (unsigned k = 0; k < kLoads; ++k)
            value = Op{}(value, loaded[k]);
    }
    value = block_reduce<Op>(value);
    if (threadIdx.x == 0) *out = value;
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// What an atomic is to be combined with must be there first.
template <class Op>
__global__ void set_to_identity(Result<Op>* out) {
    *out = Op::identity();
}

// Idea: a tree. Level by level, pairs of neighbours become one: kBlock values in log2(kBlock) steps instead of kBlock - 1.
// Cost removed: waiting; n - 1 additions in a row become log2(n) levels of additions side by side.
// Still limits it: from the second level on each warp has a few working threads, down to one, and takes as long as with all.
//
// A block takes kBlock elements at a time, element t for thread t. `scratch` has kBlock values for every block, since the
// input is not ours to overwrite.
template <class Op>
__global__ void reduce_interleaved(const Element<Op>* in, std::size_t n, Result<Op>* out,
                                   Result<Op>* scratch) {
    Result<Op>* const values = scratch + static_cast<std::size_t>(blockIdx.x) * kBlock;
    const unsigned t = threadIdx.x;
    for (std::size_t i = global_thread(); i - t < n; i += grid_threads()) {
        values[t] = element_or_identity<Op>(in, n, i);
        for (unsigned stride = 1; stride < kBlock; stride *= 2) {
            __syncthreads();
            if (t % (2 * stride) == 0) values[t] = Op{}(values[t], values[t + stride]);
        }
        if (t == 0) combine(Op{}, out, values[0]);
        __syncthreads();  // thread 0 has read its partner's value; now that may be replaced
    }
}

// Idea: the same tree with the pairs half the values apart, so that the working threads are the first ones.
// Cost removed: divergence; warps are wholly at work or wholly done, until a single one is left.
// Still limits it: each level reads from and writes to global memory.
template <class Op>
__global__ void reduce_sequential(const Element<Op>* in, std::size_t n, Result<Op>* out,
                                  Result<Op>* scratch) {
    Result<Op>* const values = scratch + static_cast<std::size_t>(blockIdx.x) * kBlock;
    const unsigned t = threadIdx.x;
    for (std::size_t i = global_thread(); i - t < n; i += grid_threads()) {
        values[t] = element_or_identity<Op>(in, n, i);
        tree_reduce<Op>(values);
        if (t == 0) combine(Op{}, out, values[0]);
        __syncthreads();  // thread 0 has read its partner's value; now that may be replaced
    }
}

// Idea: the values of the tree stand in shared memory.
// Cost removed: the way to the cache and back on each level; global memory is only read once.
// Still limits it: a tree, with its barriers and a last warp that is nearly alone, and an atomic for every 256 elements.
template <class Op>
__global__ void reduce_shared_memory(const Element<Op>* in, std::size_t n, Result<Op>* out) {
    __shared__ Result<Op> values[kBlock];
    const unsigned t = threadIdx.x;
    for (std::size_t i = global_thread(); i - t < n; i += grid_threads()) {
        values[t] = element_or_identity<Op>(in, n, i);
        tree_reduce<Op>(values);
        if (t == 0) combine(Op{}, out, values[0]);
        __syncthreads();  // thread 0 has read its partner's value; now that may be replaced
    }
}

// Idea: as many threads as the GPU can hold; each adds up its share in a register, and only then is there a tree.
// Cost removed: all trees and atomics but one for each block.
// Still limits it: a barrier for each level of the tree; 4-byte loads, each used before the next is asked for.
template <class Op>
__global__ void reduce_coarsened(const Element<Op>* in, std::size_t n, Result<Op>* out) {
    __shared__ Result<Op> values[kBlock];
    Result<Op> value = Op::identity();
    for (std::size_t i = global_thread(); i < n; i += grid_threads())
        value = Op{}(value, static_cast<Result<Op>>(in[i]));
    values[threadIdx.x] = value;
    tree_reduce<Op>(values);
    if (threadIdx.x == 0) combine(Op{}, out, values[0]);
}

// Idea: the threads of a warp exchange registers (__shfl_xor_sync): five levels without shared memory or barrier.
// Cost removed: the barriers, but for the one between the warps' results and the first warp, which reduces them.
// Still limits it: the loads. With the tree nearly free, too few bytes are under way.
template <class Op>
__global__ void reduce_shuffle(const Element<Op>* in, std::size_t n, Result<Op>* out) {
    Result<Op> value = Op::identity();
    for (std::size_t i = global_thread(); i < n; i += grid_threads())
        value = Op{}(value, static_cast<Result<Op>>(in[i]));
    value = block_reduce<Op>(value);
    if (threadIdx.x == 0) combine(Op{}, out, value);
}

// Idea: 16-byte loads, eight of them asked for before the first is used: 128 bytes under way for each thread.
// Cost removed: three of four load instructions, and the wait after each load.
// Still limits it: for large inputs memory itself; for small ones the launch that sets the result, before this one can start.
template <class Op>
__global__ void __launch_bounds__(kBlock, kBlocksPerSm)
    reduce_vectorised(const Element<Op>* in, std::size_t n, Result<Op>* out) {
    const Result<Op> value = reduce_tiles<Op>(in, n, blockIdx.x, tiles_of<Op>(n), gridDim.x);
    if (threadIdx.x == 0) combine(Op{}, out, value);
}

// Idea: no atomics on the result. Each block leaves its own in the workspace and draws a ticket; the one with the last
// ticket knows that all results are there, and reduces them.
// Cost removed: the second launch; and the result no longer depends on which block is done first.
// Still limits it: memory. But another grid, for another GPU say, adds in another order: float sums change.
template <class Op>
__global__ void __launch_bounds__(kBlock, kBlocksPerSm)
    reduce_single_pass(const Element<Op>* in, std::size_t n, Result<Op>* out, Result<Op>* results,
                       unsigned* ticket) {
    const Result<Op> value = reduce_tiles<Op>(in, n, blockIdx.x, tiles_of<Op>(n), gridDim.x);
    if (threadIdx.x == 0) results[blockIdx.x] = value;
    if (is_last_block(ticket)) finish<Op>(results, gridDim.x, out);
}

// Idea: the order of additions is laid down by n alone. The tiles are cut into segments; each has a result of its own, whichever
// block happens to work it out.
// Cost removed: none. It buys the same bits in every run, with every grid, on every GPU.
// Still limits it: memory.
template <class Op>
__global__ void __launch_bounds__(kBlock, kBlocksPerSm)
    reduce_deterministic(const Element<Op>* in, std::size_t n, Result<Op>* out, Result<Op>* results,
                         unsigned* ticket, unsigned segments, std::size_t tiles_per_segment) {
    for (unsigned segment = blockIdx.x; segment < segments; segment += gridDim.x) {
        const std::size_t first = segment * tiles_per_segment;
        const std::size_t end = std::min(first + tiles_per_segment, tiles_of<Op>(n));
        const Result<Op> value = reduce_tiles<Op>(in, n, first, end, 1);
        if (threadIdx.x == 0) results[segment] = value;
    }
    if (is_last_block(ticket)) finish<Op>(results, segments, out);
}

// --- Launchers -------------------------------------------------------------------------------------------------------

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("reduction: " + message);
}

template <class Op>
void check_arguments(DeviceSpan<const Element<Op>> in, DeviceSpan<Result<Op>> out, unsigned blocks) {
    require(out.size() == 1, "out has " + std::to_string(out.size()) + " elements; expected 1");
    require(!overlap(in, out), "out lies within in; expected an element of its own");
    require(blocks <= kMostBlocks, "blocks is " + std::to_string(blocks) + "; expected at most " +
                                       std::to_string(kMostBlocks) + ", or 0 for the launcher's choice");
}

// The grid: what the caller wants, or a block for each piece of work, but no more than `most`; at least one.
unsigned grid_size(unsigned wanted, std::size_t pieces, unsigned most) {
    if (wanted > 0) return wanted;
    return static_cast<unsigned>(std::clamp<std::size_t>(pieces, 1, std::min(most, kMostBlocks)));
}

template <class Op>
void launch_set_to_identity(DeviceSpan<Result<Op>> out, cudaStream_t stream) {
    set_to_identity<Op><<<1, 1, 0, stream>>>(out.data());
    CUDA_CHECK_LAUNCH();
}

// interleaved, sequential: the tree stands in the workspace. As many blocks as it has room for.
template <class Op, auto kKernel>
void launch_with_scratch(DeviceSpan<const Element<Op>> in, DeviceSpan<Result<Op>> out, Workspace& workspace,
                         unsigned blocks, cudaStream_t stream) {
    check_arguments<Op>(in, out, blocks);
    launch_set_to_identity<Op>(out, stream);
    const unsigned grid = grid_size(blocks, course::ceil_div<std::size_t>(in.size(), kBlock), kMostBlocks);
    kKernel<<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data(), workspace.results<Result<Op>>());
    CUDA_CHECK_LAUNCH();
}

// shared_memory, coarsened, shuffle, vectorised: a block takes at least kPiece elements, if there are that many.
template <class Op, auto kKernel, int kPiece>
void launch_with_atomics(DeviceSpan<const Element<Op>> in, DeviceSpan<Result<Op>> out, Workspace&,
                         unsigned blocks, cudaStream_t stream) {
    check_arguments<Op>(in, out, blocks);
    launch_set_to_identity<Op>(out, stream);
    const unsigned grid = grid_size(blocks, course::ceil_div<std::size_t>(in.size(), kPiece),
                                    course::resident_blocks(kKernel, kBlock));
    kKernel<<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data());
    CUDA_CHECK_LAUNCH();
}

template <class Op>
void launch_single_pass(DeviceSpan<const Element<Op>> in, DeviceSpan<Result<Op>> out, Workspace& workspace,
                        unsigned blocks, cudaStream_t stream) {
    check_arguments<Op>(in, out, blocks);
    const unsigned grid =
        grid_size(blocks, tiles_of<Op>(in.size()), course::resident_blocks(reduce_single_pass<Op>, kBlock));
    reduce_single_pass<Op><<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data(),
                                                        workspace.results<Result<Op>>(), workspace.ticket());
    CUDA_CHECK_LAUNCH();
}

template <class Op>
void launch_deterministic(DeviceSpan<const Element<Op>> in, DeviceSpan<Result<Op>> out, Workspace& workspace,
                          unsigned blocks, cudaStream_t stream) {
    check_arguments<Op>(in, out, blocks);
    // Nothing here may depend on the device: at most kMostBlocks segments, of as many tiles each, the last perhaps of fewer.
    const std::size_t tiles = tiles_of<Op>(in.size());
    const std::size_t tiles_per_segment =
        std::max<std::size_t>(1, course::ceil_div<std::size_t>(tiles, kMostBlocks));
    const auto segments = static_cast<unsigned>(course::ceil_div(tiles, tiles_per_segment));
    // Here it may: who works out which segment does not change its result.
    const unsigned grid =
        grid_size(blocks, segments, course::resident_blocks(reduce_deterministic<Op>, kBlock));
    reduce_deterministic<Op><<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data(),
                                                          workspace.results<Result<Op>>(), workspace.ticket(),
                                                          segments, tiles_per_segment);
    CUDA_CHECK_LAUNCH();
}

template <class Op>
course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = sizeof(Element<Op>) * elements + sizeof(Result<Op>),
            .written = sizeof(Result<Op>),
            .flops = elements,
            .arithmetic =
                std::is_same_v<Element<Op>, float> ? course::Arithmetic::kFp32 : course::Arithmetic::kOther};
}

}  // namespace

Workspace::Workspace()
    : ticket_(std::span<const unsigned>(std::array{0U})),
      results_(static_cast<std::size_t>(kMostBlocks) * kBlock) {}

// --- The list ----------------------------------------------------------------------------------------------------------

template <class Op>
std::span<const Reduction<Op>> variants() {
    static const std::array<Reduction<Op>, 8> list = {{
        {"interleaved", "tree over neighbours, in global memory",
         launch_with_scratch<Op, reduce_interleaved<Op>>, work<Op>},
        {"sequential", "tree over halves: no divergence", launch_with_scratch<Op, reduce_sequential<Op>>,
         work<Op>},
        {"shared_memory", "tree in shared memory", launch_with_atomics<Op, reduce_shared_memory<Op>, kBlock>,
         work<Op>},
        {"coarsened", "a thread sums many elements, then one tree per block",
         launch_with_atomics<Op, reduce_coarsened<Op>, kBlock>, work<Op>},
        {"shuffle", "warps reduce in registers", launch_with_atomics<Op, reduce_shuffle<Op>, kBlock>,
         work<Op>},
        {"vectorised", "16-byte loads, eight under way per thread",
         launch_with_atomics<Op, reduce_vectorised<Op>, kTile<Element<Op>>>, work<Op>},
        {"single_pass", "the last block finishes: one launch", launch_single_pass<Op>, work<Op>},
        {"deterministic", "the same bits in every run and with every grid", launch_deterministic<Op>,
         work<Op>},
    }};
    return list;
}

template std::span<const Reduction<Sum<float>>> variants<Sum<float>>();
template std::span<const Reduction<Sum<std::int32_t>>> variants<Sum<std::int32_t>>();
template std::span<const Reduction<Sum<std::int64_t>>> variants<Sum<std::int64_t>>();
template std::span<const Reduction<Min<float>>> variants<Min<float>>();
template std::span<const Reduction<Min<std::int32_t>>> variants<Min<std::int32_t>>();
template std::span<const Reduction<Min<std::int64_t>>> variants<Min<std::int64_t>>();
template std::span<const Reduction<Max<float>>> variants<Max<float>>();
template std::span<const Reduction<Max<std::int32_t>>> variants<Max<std::int32_t>>();
template std::span<const Reduction<Max<std::int64_t>>> variants<Max<std::int64_t>>();

}  // namespace day15
