// The ladder's list, and what all its launchers check.
#include <array>
#include <stdexcept>
#include <string>

#include "beyond/beyond.hpp"
#include "common/device/pack.cuh"
#include "sgemm.hpp"
#include "steps/steps.hpp"

namespace gemm {
namespace {

std::string text_of(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("sgemm: " + message);
}

course::Work work(const Shape& shape) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = sizeof(float) * (m * k + k * n + m * n),
            .written = sizeof(float) * m * n,
            .flops = 2 * m * n * k};
}

course::Work tensor_work(const Shape& shape) {
    course::Work same = work(shape);
    same.arithmetic = course::Arithmetic::kOther;
    return same;
}

}  // namespace

Sgemm checked(const Sgemm& gemm) {
    const auto& [a, b, c, alpha, beta, scratch] = gemm;
    require(a.cols() == b.rows() && c.rows() == a.rows() && c.cols() == b.cols(),
            "A is " + text_of(a.rows(), a.cols()) + ", B is " + text_of(b.rows(), b.cols()) + ", C is " +
                text_of(c.rows(), c.cols()) + "; expected A: M x K, B: K x N, C: M x N");
    require(!overlap(a, c), "C overlaps A; expected no common element");
    require(!overlap(b, c), "C overlaps B; expected no common element");
    if (alpha != 0 && a.cols() != 0) return gemm;

    using Operand = course::DeviceMatrix<const float>;
    using Memory = course::DeviceSpan<const float>;
    return {Operand(Memory::from_device_pointer(a.data(), 0), a.rows(), 0),
            Operand(Memory::from_device_pointer(b.data(), 0), 0, b.cols()),
            c,
            0,
            beta,
            scratch};
}

Sgemm checked(const Sgemm& gemm, const ScratchSize& needed) {
    Sgemm result = checked(gemm);
    const Scratch& scratch = gemm.scratch;
    require(scratch.partial.size() >= needed.partial && scratch.tickets.size() >= needed.tickets,
            "the scratch memory has " + std::to_string(scratch.partial.size()) + " partial sums and " +
                std::to_string(scratch.tickets.size()) + " tickets; expected at least " +
                std::to_string(needed.partial) + " and " + std::to_string(needed.tickets));
    require(
        course::is_aligned(scratch.partial.data(), 16),
        "the scratch memory's partial sums do not begin at a multiple of 16 bytes; expected that they do");
    return result;
}

std::span<const Step> steps() {
    static const std::array list = std::to_array<Step>({
        {"01_naive", "a thread for each element of C", naive(), work},
        {"02_shared_memory", "tiles of A and B in shared memory", shared_memory(), work},
        {"03_thread_tile_1d", "8 results of a column for each thread", thread_tile_1d(), work},
        {"04a_larger_tile", "a tile of 128 x 128 for each block", larger_tile(), work},
        {"04b_plain_loads", "8 x 8 results for each thread, loads as before", plain_loads(), work},
        {"04_thread_tile_2d", "8 x 8 results for each thread, addresses worked out once", thread_tile_2d(),
         work},
        {"05_register_fragments", "operands copied to registers first", register_fragments(), work},
        {"06a_transposed", "A's tile in shared memory transposed", transposed(), work},
        {"06b_fours", "fragments read as float4", fours(), work},
        {"06_vectorized", "float4 in global memory, too", vectorized(), work},
        {"07a_two_stages", "the next tile is loaded during this one", two_stages(), work},
        {"07_double_buffering", "and so are the next fragments", double_buffering(), work},
        {"08_swizzle", "A's tile in shared memory without bank conflicts", swizzle(), work},
        {"09a_larger_thread_tile", "16 x 8 results for each thread", larger_thread_tile(), work},
        {"09b_larger_bk", "tiles of 16 columns of A instead of 8", larger_bk(), work},
        {"09c_one_check", "one bounds check for each tile", one_check(), work},
        {"09_warp_tiling", "a 64 x 64 tile for each warp", warp_tiling(), work},
        {"10_warp_tiling_swizzle", "the same without bank conflicts", warp_tiling_swizzle(), work},
        {"11a_split_k_alone", "two blocks for each tile, a second kernel adds up", split_k_alone(), work},
        {"11_split_k", "the same, of two adjacent sums the second one first", split_k(), work},
        {"11_split_k_in_kernel", "two blocks for each tile, the last one adds up", split_k_in_kernel(), work},
    });
    return list;
}

std::span<const Step> beyond() {
    static const std::array list = std::to_array<Step>({
        {"12_multi_stage", "asynchronous copies, three tiles ahead", multi_stage(), work},
        {"13_stream_k", "equal shares of all tiles for all blocks", stream_k(), work},
        {"14_dispatcher", "the tile that suits the shape", dispatcher(), work},
        {"15_tf32x3", "FP32 accuracy from tensor cores", tf32x3(), tensor_work, why_no_tf32},
        {"16a_wgmma_alone", "the same by wgmma, on tiles that TMA copies", tf32x3_wgmma_alone(), tensor_work,
         why_no_tf32_wgmma},
        {"16_tf32x3_wgmma", "with split-K, and step 14 for small products", tf32x3_wgmma(), tensor_work,
         why_no_tf32_wgmma},
    });
    return list;
}

}  // namespace gemm
