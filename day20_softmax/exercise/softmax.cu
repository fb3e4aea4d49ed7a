// To work through: fill in what says TODO, then ./course check day20. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
// Day 20: softmax, y[i] = exp(x[i] - max) / sum_j exp(x[j] - max).                          PMPP chapter 10
//
// One row here, one idea after the other; many rows, and the whole GPU on one row, are in softmax_rows.cu.
//
//   version         kernels   passes over the data     what limits it
//   five_kernels    5         5 reads, 3 writes        memory, used eight times
//   three_kernels   3         3 reads, 2 writes        memory, used five times
//   online          2         2 reads, 1 write         the second read
//   whole_gpu       1         1 read, 1 write          memory; a row must fit into the GPU's registers
//
// Softmax must read 4 and write 4 bytes per element, so the best possible time is 8 n bytes / (memory bandwidth).
//
//   ./course run day20                          all versions, verified and timed
//   ./course run day20 --variant online --size 1x4194304
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "softmax_device.cuh"
#include "softmax_rows.hpp"

namespace day20 {
namespace {

constexpr int kBlockSize = 256;

__device__ std::size_t global_thread() {
    return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ std::size_t all_threads() {
    return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// A result of all blocks needs all blocks to have finished. The end of a kernel is such a moment: each block leaves its part
// in parts[blockIdx.x], and in the next kernel every block begins by taking all parts together. parts has gridDim.x elements.

template <class Op>
__device__ float reduce_parts(const MaxSum* parts, int count, float MaxSum::*member, Op op) {
    float mine = Op::identity();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlockSize)
        mine = op(mine, parts[i].*member);
    return block_reduce<kBlockSize, Op>(mine);
}

// Idea: softmax as it stands in the book, a kernel per operation: maximum, difference, exponential, sum, quotient.
// Cost removed: none yet.
// Still limits it: memory. Every kernel reads what the one before wrote, for one operation per element.
__global__ void part_maxima(const float* x, MaxSum* parts, std::size_t n) {
    // TODO day20/five_kernels, about 25 minutes.
    // Softmax of one row of n numbers, an operation per kernel. In this order: the maximum of each block goes
    // to `parts[blockIdx.x].max`; y = x - maximum of all; y = exp(y); the sum of each block goes to
    // `parts[blockIdx.x].sum`; y = y / sum of all.
    //
    // Every kernel runs with `count` blocks of kBlockSize threads, often fewer threads than elements.
    //
    // Given: `global_thread()`, `all_threads()`, `block_reduce<kBlockSize, Max>(value)` and the same with Sum
    // (all threads call it, all get the result), and `reduce_parts(parts, count, &MaxSum::max, Max{})`, which
    // takes the parts of all blocks together.
}

__global__ void subtract_maximum(const float* x, float* y, const MaxSum* parts, int count, std::size_t n) {
    // TODO day20/five_kernels: this one too, see part_maxima.
}

__global__ void exponentiate(float* y, std::size_t n) {
    // TODO day20/five_kernels: this one too, see part_maxima.
}

__global__ void part_sums(const float* y, MaxSum* parts, std::size_t n) {
    // TODO day20/five_kernels: this one too, see part_maxima.
}

__global__ void divide_by_sum(float* y, const MaxSum* parts, int count, std::size_t n) {
    // TODO day20/five_kernels: this one too, see part_maxima.
}

// Idea: difference, exponential and sum of an element follow each other in a register; between part_maxima and divide_by_sum.
// Cost removed: two reads and one write of everything.
// Still limits it: memory; the maximum must be known before the first exponential.
__global__ void exponentials_and_sums(const float* x, float* y, MaxSum* parts, int count, std::size_t n) {
    // TODO day20/three_kernels, about 10 minutes.
    // One kernel for what three did: difference, exponential and sum. For each element write `y[i] = exp(x[i]
    // - maximum)` and add it up at the same time, so that x is read once and nothing is read back. At the end
    // `parts[blockIdx.x].sum` is the sum of this block's elements. `parts[...].max` of all `count` blocks is
    // known already, from `part_maxima`.
}

// Idea: maximum and sum in one pass: when a larger maximum turns up, what is summed already is brought to it.
// Cost removed: the pass for the maximum, and writing exponentials that are read again only to be divided.
// Still limits it: the data is read a second time, by normalise.
__global__ void part_maxima_and_sums(const float* x, MaxSum* parts, std::size_t n) {
    // TODO day20/online, about 20 minutes.
    // Two kernels for everything. The first finds maximum and sum of exp(x - maximum) in one pass and leaves
    // the pair in `parts[blockIdx.x]`. The second reads x again and writes the result.
    //
    // Given: `nothing()`, `merge(a, b)` (two parts become one), `warp_merge(part)`,
    // `block_merge<kBlockSize>(part)`, where `part` is that of the whole warp,
    // `block_merge<kBlockSize>(parts, count)` for parts in memory, and `Normaliser<kOutput>`, which is made
    // from the row's pair and called with x.
}

template <Output kOutput>
__global__ void normalise(const float* x, float* y, const MaxSum* parts, int count, std::size_t n) {
    // TODO day20/online: this one too, see part_maxima_and_sums.
}

// --- Launchers -------------------------------------------------------------------------------------------------------

std::string one_row(const Problem& problem) {
    return problem.rows > 1 ? "works on one row, not on " + std::to_string(problem.rows) : "";
}

std::string one_row_of_softmax(const Problem& problem) {
    return problem.output != Output::kSoftmax ? "computes softmax, not " + name(problem.output)
                                              : one_row(problem);
}

void launch_five_kernels(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                         DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    require_possible(one_row_of_softmax({in.rows(), in.cols(), output}));
    if (!check_arguments(in, out, workspace)) return;
    const std::size_t n = in.cols();
    MaxSum* const parts = workspace.data();
    const auto blocks = static_cast<int>(most_parts(n));
    part_maxima<<<blocks, kBlockSize, 0, stream>>>(in.data(), parts, n);
    CUDA_CHECK_LAUNCH();
    subtract_maximum<<<blocks, kBlockSize, 0, stream>>>(in.data(), out.data(), parts, blocks, n);
    CUDA_CHECK_LAUNCH();
    exponentiate<<<blocks, kBlockSize, 0, stream>>>(out.data(), n);
    CUDA_CHECK_LAUNCH();
    part_sums<<<blocks, kBlockSize, 0, stream>>>(out.data(), parts, n);
    CUDA_CHECK_LAUNCH();
    divide_by_sum<<<blocks, kBlockSize, 0, stream>>>(out.data(), parts, blocks, n);
    CUDA_CHECK_LAUNCH();
}

void launch_three_kernels(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                          DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    require_possible(one_row_of_softmax({in.rows(), in.cols(), output}));
    if (!check_arguments(in, out, workspace)) return;
    const std::size_t n = in.cols();
    MaxSum* const parts = workspace.data();
    const auto blocks = static_cast<int>(most_parts(n));
    part_maxima<<<blocks, kBlockSize, 0, stream>>>(in.data(), parts, n);
    CUDA_CHECK_LAUNCH();
    exponentials_and_sums<<<blocks, kBlockSize, 0, stream>>>(in.data(), out.data(), parts, blocks, n);
    CUDA_CHECK_LAUNCH();
    divide_by_sum<<<blocks, kBlockSize, 0, stream>>>(out.data(), parts, blocks, n);
    CUDA_CHECK_LAUNCH();
}

void launch_online(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                   DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    require_possible(one_row({in.rows(), in.cols(), output}));
    if (!check_arguments(in, out, workspace)) return;
    const std::size_t n = in.cols();
    MaxSum* const parts = workspace.data();
    const auto blocks = static_cast<int>(most_parts(n));
    part_maxima_and_sums<<<blocks, kBlockSize, 0, stream>>>(in.data(), parts, n);
    CUDA_CHECK_LAUNCH();
    const auto kernel =
        output == Output::kSoftmax ? normalise<Output::kSoftmax> : normalise<Output::kLogSoftmax>;
    kernel<<<blocks, kBlockSize, 0, stream>>>(in.data(), out.data(), parts, blocks, n);
    CUDA_CHECK_LAUNCH();
}

void launch_chosen(Output output, DeviceMatrix<const float> in, DeviceMatrix<float> out,
                   DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    chosen_for({in.rows(), in.cols(), output}).launcher(output, in, out, workspace, stream);
}

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("softmax: " + message);
}

// The same elements, or none in common.
bool same_or_apart(DeviceMatrix<const float> in, DeviceMatrix<float> out) {
    const bool same =
        in.data() == out.data() && (in.rows() == 1 || in.leading_dimension() == out.leading_dimension());
    return same || !course::overlap(in, out);
}

std::string shape(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

}  // namespace

// --- Shared with softmax_rows.cu -----------------------------------------------------------------------------------------

bool check_arguments(DeviceMatrix<const float> in, DeviceMatrix<float> out, DeviceSpan<MaxSum> workspace) {
    require(in.rows() == out.rows() && in.cols() == out.cols(),
            "in is " + shape(in.rows(), in.cols()) + " and out " + shape(out.rows(), out.cols()) +
                "; expected the same shape");
    if (in.rows() == 0 || in.cols() == 0) return false;  // a grid must have a block
    require(
        same_or_apart(in, out),
        "out overlaps in but is not in; expected the same address and leading dimension, or no element in "
        "common");
    const std::size_t needed = workspace_size(in.rows(), in.cols());
    require(workspace.size() >= needed, "workspace has " + std::to_string(workspace.size()) +
                                            " elements; expected at least " + std::to_string(needed));
    return true;
}

void require_possible(const std::string& reason) {
    require(reason.empty(), "this version " + reason);
}

std::size_t most_parts(std::size_t cols) {
    return std::min(kMaxParts, course::ceil_div<std::size_t>(cols, 4 * kBlockSize));
}

std::size_t workspace_size(std::size_t rows, std::size_t cols) {
    return rows * most_parts(cols);
}

std::string name(Output output) {
    return output == Output::kSoftmax ? "softmax" : "log_softmax";
}

// Maximum, difference, exponential, sum and quotient: five operations per element.
course::Work work(const Problem& problem) {
    const double elements = static_cast<double>(problem.rows) * static_cast<double>(problem.cols);
    return {
        .bytes = 2 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = 5 * elements};
}

// --- The list ----------------------------------------------------------------------------------------------------------

const Softmax& chosen_for(const Problem& problem) {
    return choose_row_variant(problem);
}

std::span<const Softmax> variants() {
    static const std::vector<Softmax> list = [] {
        std::vector<Softmax> all = {
            {"five_kernels", "one kernel per operation", launch_five_kernels, work, one_row_of_softmax},
            {"three_kernels", "difference, exponential and sum fused", launch_three_kernels, work,
             one_row_of_softmax},
            {"online", "maximum and sum in one pass", launch_online, work, one_row},
        };
        all.insert(all.end(), row_variants().begin(), row_variants().end());
        all.push_back({"auto", "the version for this shape", launch_chosen, work});
        return all;
    }();
    return list;
}

}  // namespace day20
