// To work through: fill in what says TODO, then ./course check day01. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Day 1: vector addition, c = a + b for n floats.                                    PMPP chapters 2 and 3
//
//   version           a thread adds                          what limits it
//   one_per_element   one element                            instructions and blocks: little work each
//   grid_stride       every (number of threads)-th element   4-byte accesses: many requests for few bytes
//   float4            four neighbours at a time              memory: 12 bytes must move for every addition
//
// Each reads 8 and writes 4 bytes for one addition, so the best possible time is 12 n bytes / (memory bandwidth).
//
//   ./course run day01                       all versions, verified and timed
//   ./course run day01 --variant float4 --size 268435456
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "vector_add.hpp"

namespace day01 {
namespace {

using course::DeviceSpan;
using Float4 = course::Pack<float, 4>;

constexpr int kBlockSize = 256;

// The number of this thread among all threads of the grid. size_t before the product: more than 2^24 blocks of 256 threads
// are more than 32 bits can count.
__device__ std::size_t global_thread() {
    // TODO day01/one_per_element, about 10 minutes.
    // `a`, `b` and `c` have `n` elements each. Write `c[i] = a[i] + b[i]`, one element for each thread.
    //
    // `global_thread()` says which thread of the whole grid this is: 0 for the first thread of the first
    // block, and so on without a gap. Blocks have `blockDim.x` threads. Blocks are whole, the data need not
    // be: 257 elements get two blocks, 512 threads.
    return {};
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: as many threads as elements; neighbouring threads take neighbouring elements, so a warp reads 128 bytes in a row.
// Cost removed: the loop of the CPU.
// Still limits it: a thread starts, adds once and is gone, and the grid must fit the data.
__global__ void add_one_per_element(const float* a, const float* b, float* c, std::size_t n) {
    // TODO day01/one_per_element: this one too, see global_thread.
}

// Idea: as many threads as the GPU can hold at once; each goes on one whole grid further.
// Cost removed: starting a block for every 256 elements; any grid is right for any n.
// Still limits it: every access moves 4 bytes per thread, and each step of the loop waits for the one before.
__global__ void add_grid_stride(const float* a, const float* b, float* c, std::size_t n) {
    // TODO day01/grid_stride, about 10 minutes.
    // The same sum by fewer threads than elements. With T threads in the grid, thread t adds the elements t,
    // t + T, t + 2T, ... below `n`. `global_thread()` is t. Any grid must be right for any `n`, also a grid
    // of one thread.
}

// Idea: 16 bytes per access. The pointers must be multiples of 16; up to three elements are left for single threads.
// Cost removed: three of four load and store instructions; four times the bytes in flight per thread.
// Still limits it: memory itself.
__global__ void add_float4(const float* a, const float* b, float* c, std::size_t n) {
    // TODO day01/float4, about 15 minutes.
    // Four neighbours at a time. `Float4::load(address)` reads 16 bytes in one access, `sum.store(address)`
    // writes them; in between, the four numbers are `x.value[0]` to `x.value[3]`. The launcher has made sure
    // that `a`, `b` and `c` begin at multiples of 16 bytes.
    //
    // Thread i adds the elements 4 i to 4 i + 3. There is at least one thread for every four elements, the
    // last four perhaps not complete: `n` may be 7, and then the elements 4, 5 and 6 need somebody to add
    // them. Each pack must lie wholly inside: reading or writing beyond `n` is a mistake.
}

// --- Launchers -------------------------------------------------------------------------------------------------------

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("vector_add: " + message);
}

// The same elements, or none in common.
bool same_or_apart(DeviceSpan<const float> in, DeviceSpan<float> out) {
    return in.data() == out.data() || !overlap(in, out);
}

void check_arguments(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c) {
    require(a.size() == c.size() && b.size() == c.size(),
            "a, b and c have " + std::to_string(a.size()) + ", " + std::to_string(b.size()) + " and " +
                std::to_string(c.size()) + " elements; expected the same number");
    require(same_or_apart(a, c), "c overlaps a but is not a; expected the same elements or none in common");
    require(same_or_apart(b, c), "c overlaps b but is not b; expected the same elements or none in common");
}

void launch_one_per_element(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                            cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;  // a grid must have a block
    const unsigned blocks = course::blocks_for(c.size(), kBlockSize);
    add_one_per_element<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

void launch_grid_stride(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                        cudaStream_t stream) {
    // TODO day01/launch, about 10 minutes.
    // The host's side. Check the arguments with `check_arguments(a, b, c)`, then start `add_grid_stride` on
    // `stream` with blocks of `kBlockSize` threads, and end with `CUDA_CHECK_LAUNCH()`, which throws where
    // the launch went wrong.
    //
    // The kernel (your next exercise) is right with any number of blocks. Start enough for all elements, but
    // no more than the GPU can hold at once: `course::blocks_for(elements, kBlockSize)` and
    // `course::resident_blocks(add_grid_stride, kBlockSize)` count them. An empty `c` is legal, and a grid
    // without blocks is not.
}

void launch_float4(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                   cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;
    for (const void* pointer : {static_cast<const void*>(a.data()), static_cast<const void*>(b.data()),
                                static_cast<const void*>(c.data())}) {
        if (!course::is_aligned(pointer, sizeof(Float4))) return launch_grid_stride(a, b, c, stream);
    }
    const unsigned blocks = course::blocks_for(course::ceil_div<std::size_t>(c.size(), 4), kBlockSize);
    add_float4<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 3 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

}  // namespace

// --- The list ----------------------------------------------------------------------------------------------------------

std::span<const VectorAdd> variants() {
    static const std::array<VectorAdd, 3> list = {{
        {"one_per_element", "one thread per element", launch_one_per_element, work},
        {"grid_stride", "resident threads stride over the data", launch_grid_stride, work},
        {"float4", "16 bytes per access, scalar tail", launch_float4, work},
    }};
    return list;
}

}  // namespace day01
