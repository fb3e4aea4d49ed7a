// Day 30, third part: int8 x int8 -> int32, C = A W^T with A of M x K and W of N x K.        PMPP chapters 5 and 6
//
//   version         products by           tiles from                                     what limits it
//   scalar          one multiply-add      global memory, a byte at a time                loads: two for one multiply-add
//   dp4a            four in __dp4a        shared memory, 8 x 8 results of a thread       the rate of __dp4a
//   tensor_cores    4096 in an mma        cp.async, shared memory, ldmatrix              the rate of mma.sync
//
//   ./course run day30 --size 1024x1024x1024
#include <algorithm>
#include <array>
#include <string>

#include "arguments.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/pack.cuh"
#include "common/device/tensor_core_support.hpp"
#include "int8_matmul.hpp"
#include "tensor_tile.cuh"

namespace day30 {
namespace {

// --- Kernels ---------------------------------------------------------------------------------------------------------

constexpr int kScalarCols = 32;
constexpr int kScalarRows = 8;

// Idea: a thread for each result, the definition as it stands.
// Cost removed: none yet.
// Still limits it: two loads of a byte for one multiply-add, and neighbouring threads read different rows of W.
__global__ void __launch_bounds__(kScalarCols* kScalarRows)
    scalar(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w, DeviceMatrix<std::int32_t> c,
           unsigned tiles_n) {
    const std::size_t row = std::size_t{blockIdx.x / tiles_n} * kScalarRows + threadIdx.y;
    const std::size_t column = std::size_t{blockIdx.x % tiles_n} * kScalarCols + threadIdx.x;
    if (row >= c.rows() || column >= c.cols()) return;
    int sum = 0;
    for (std::size_t k = 0; k < a.cols(); ++k)
        sum += a(row, k) * w(column, k);
    c(row, column) = sum;
}

constexpr int kDotTile = 128;     // results of a block, each way
constexpr int kDotThreads = 256;  // 16 x 16
constexpr int kDotWords = 8;      // of four bytes of K, in a tile
constexpr int kDotPad = 4;        // keeps rows aligned to 16 bytes, and their stores apart in the banks

// One thread's part of a tile: four words of K of one row, transposed into shared memory.
template <bool kAligned>
__device__ void load_words(DeviceMatrix<const std::int8_t> from, std::size_t first_row, std::size_t begin,
                           int (&tile)[kDotWords][kDotTile + kDotPad]) {
    constexpr int kParts = kDotWords / 4;
    const int row = static_cast<int>(threadIdx.x) / kParts;
    const int part = static_cast<int>(threadIdx.x) % kParts * 4;
    const std::size_t column = begin + static_cast<std::size_t>(part * 4);
    course::Pack<std::int8_t, 16> bytes{};
    if (first_row + row < from.rows()) {
        const std::int8_t* const source = from.data() + (first_row + row) * from.leading_dimension();
        if (kAligned && column + 16 <= from.cols()) {
            bytes = course::Pack<std::int8_t, 16>::load(source + column);
        } else {
            for (std::size_t i = 0; i < 16; ++i)
                if (column + i < from.cols()) bytes.value[i] = source[column + i];
        }
    }
    int words[4];
    std::memcpy(words, &bytes, sizeof(words));
    for (int i = 0; i < 4; ++i)
        tile[part + i][row] = words[i];
}

// Idea: four bytes of K in a word, which __dp4a multiplies and adds in one instruction; tiles in shared memory, 8 x 8 results of a
// thread in registers, in two halves each way so that loads of neighbouring threads lie side by side.
// Cost removed: nearly all loads, and three of four instructions.
// Still limits it: the rate of __dp4a. Tensor cores multiply many times as fast.
template <bool kAligned>
__global__ void __launch_bounds__(kDotThreads, 2)
    dp4a(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w, DeviceMatrix<std::int32_t> c,
         unsigned tiles_n) {
    __shared__ __align__(16) int a_tile[kDotWords][kDotTile + kDotPad];
    __shared__ __align__(16) int w_tile[kDotWords][kDotTile + kDotPad];
    const std::size_t tile_row = std::size_t{blockIdx.x / tiles_n} * kDotTile;
    const std::size_t tile_column = std::size_t{blockIdx.x % tiles_n} * kDotTile;
    const int row = static_cast<int>(threadIdx.x) / 16 * 4;
    const int column = static_cast<int>(threadIdx.x) % 16 * 4;

    int sums[8][8] = {};
    for (std::size_t begin = 0; begin < a.cols(); begin += kDotWords * 4) {
        load_words<kAligned>(a, tile_row, begin, a_tile);
        load_words<kAligned>(w, tile_column, begin, w_tile);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDotWords; ++k) {
            course::Pack<int, 4> x[2], y[2];
            for (int half = 0; half < 2; ++half) {
                x[half] = course::Pack<int, 4>::load(&a_tile[k][row + half * kDotTile / 2]);
                y[half] = course::Pack<int, 4>::load(&w_tile[k][column + half * kDotTile / 2]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    sums[i][j] = __dp4a(x[i / 4].value[i % 4], y[j / 4].value[j % 4], sums[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) {
            const std::size_t r = tile_row + row + i / 4 * kDotTile / 2 + i % 4;
            const std::size_t s = tile_column + column + j / 4 * kDotTile / 2 + j % 4;
            if (r < c.rows() && s < c.cols()) c(r, s) = sums[i][j];
        }
    }
}

using Tile =
    TileShape<128, 128, 64, 64, 3>;  // two blocks on a multiprocessor: one multiplies while the other stores

// Idea: a warp multiplies 16 x 32 by 32 x 8 bytes in one instruction. Copies of later tiles are under way meanwhile.
// Cost removed: instructions; waiting for global memory; bank conflicts.
// Still limits it: mma.sync takes its operands through registers, and does not reach what Hopper's wgmma does from shared memory.
template <class T>
__global__ void __launch_bounds__(T::THREADS)
    tensor_cores(DeviceMatrix<const std::int8_t> a, DeviceMatrix<const std::int8_t> w,
                 DeviceMatrix<std::int32_t> c, unsigned tiles_m, unsigned tiles_n) {
    extern __shared__ __align__(128) std::byte shared[];
    const TilePlace place = tile_place<T>(tiles_m, tiles_n);
    Sums<T, int> sums = {};
    multiply_tile<T, int>(shared, rows_from(a.data(), a.leading_dimension(), a.rows(), a.cols(), place.row),
                          rows_from(w.data(), w.leading_dimension(), w.rows(), w.cols(), place.column), sums);
    const bool pairs = c.leading_dimension() % 2 == 0 && reinterpret_cast<std::uintptr_t>(c.data()) % 8 == 0;
    for_each_pair<T>([&](int i, int j, int pair, int row, int column) {
        const int* const sum = &sums[i][j][pair];
        const std::size_t r = place.row + row;
        const std::size_t s = place.column + column;
        if (r >= c.rows() || s >= c.cols()) return;
        if (pairs && s + 1 < c.cols()) {
            *reinterpret_cast<int2*>(&c(r, s)) = make_int2(sum[0], sum[1]);
        } else {
            c(r, s) = sum[0];
            if (s + 1 < c.cols()) c(r, s + 1) = sum[1];
        }
    });
}

// --- Launchers -------------------------------------------------------------------------------------------------------

using In = DeviceMatrix<const std::int8_t>;
using Out = DeviceMatrix<std::int32_t>;

// Throws std::invalid_argument unless the arguments are as int8_matmul.hpp says. False when there is nothing to do.
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

std::string tensor_cores_constraint(const MatmulShape& = {}) {
    return course::why_no_tensor_cores(tensor_cores<Tile>, Tile::SHARED);
}

void launch_scalar(In a, In w, Out c, cudaStream_t stream) {
    if (!check_arguments(a, w, c)) return;
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), kScalarRows);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), kScalarCols);
    scalar<<<course::blocks_for(tiles_m * tiles_n, 1), dim3(kScalarCols, kScalarRows), 0, stream>>>(
        a, w, c, static_cast<unsigned>(tiles_n));
    CUDA_CHECK_LAUNCH();
}

void launch_dp4a(In a, In w, Out c, cudaStream_t stream) {
    if (!check_arguments(a, w, c)) return;
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), kDotTile);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), kDotTile);
    const auto kernel = both_are_aligned(a, w) ? dp4a<true> : dp4a<false>;
    kernel<<<course::blocks_for(tiles_m * tiles_n, 1), kDotThreads, 0, stream>>>(
        a, w, c, static_cast<unsigned>(tiles_n));
    CUDA_CHECK_LAUNCH();
}

void launch_tensor_cores(In a, In w, Out c, cudaStream_t stream) {
    const std::string reason = tensor_cores_constraint();
    course::require(reason.empty(), "int8_matmul: this version ", reason);
    require_aligned_rows("int8_matmul: a", a);
    require_aligned_rows("int8_matmul: w", w);
    if (!check_arguments(a, w, c)) return;
    const std::size_t tiles_m = course::ceil_div<std::size_t>(c.rows(), Tile::BM);
    const std::size_t tiles_n = course::ceil_div<std::size_t>(c.cols(), Tile::BN);
    course::launch(tensor_cores<Tile>,
                   {course::blocks_for(tiles_m * tiles_n, 1), Tile::THREADS, Tile::SHARED, stream}, a, w, c,
                   static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n));
}

void launch_chosen(In a, In w, Out c, cudaStream_t stream) {
    const bool can = both_are_aligned(a, w) && tensor_cores_constraint().empty();
    (can ? launch_tensor_cores : launch_dp4a)(a, w, c, stream);
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
    return course::resources_of(scalar, kScalarCols * kScalarRows);
}
course::KernelResources dp4a_resources() {
    return course::resources_of(dp4a<true>, kDotThreads);
}
course::KernelResources tensor_cores_resources() {
    course::allow_shared_bytes(tensor_cores<Tile>, Tile::SHARED);
    return course::resources_of(tensor_cores<Tile>, Tile::THREADS, Tile::SHARED);
}

}  // namespace

std::span<const Int8Matmul> matmul_variants() {
    static const std::array<Int8Matmul, 4> list = {{
        {"scalar", "a thread for each result", {launch_scalar, scalar_resources}, work},
        {"dp4a",
         "four products in an instruction, tiles in shared memory",
         {launch_dp4a, dp4a_resources},
         work},
        {"tensor_cores",
         "mma.m16n8k32, asynchronous copies in stages",
         {launch_tensor_cores, tensor_cores_resources, true},
         work,
         tensor_cores_constraint},
        {"auto",
         "tensor cores where the GPU has them and rows are aligned",
         {launch_chosen, tensor_cores_resources},
         work},
    }};
    return list;
}

}  // namespace day30
