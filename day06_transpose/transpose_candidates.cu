#include <algorithm>
#include <array>
#include <limits>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "transpose_candidates.hpp"

// Names. t<rows>x<cols>_a<bytes>_g<group>[_cs][_ldcs]: tile of `in`; stores aligned to so many bytes (a4: not aligned); tiles side by
// side before a block order goes down (g1: down first, g0: across first); streaming stores, streaming loads.
// s<cols>_a<bytes>[_cs]: streamed, strip width. v<group>: 16-byte packs, 64 x 64.
namespace day06 {
namespace {

using course::ceil_div;
using course::DeviceMatrix;
using Word = std::uint32_t;

template <bool CS, class T>
__device__ void put(T* address, T value) {
#ifdef __CUDA_ARCH__
    if constexpr (CS) {
        __stcs(address, value);
        return;
    }
#endif
    *address = value;
}

template <bool CS>
__device__ Word get(const Word* address) {
#ifdef __CUDA_ARCH__
    if constexpr (CS) return __ldcs(address);
#endif
    return *address;
}

__device__ void place(unsigned group, unsigned down, unsigned across, unsigned& tile_row,
                      unsigned& tile_col) {
    if (group == 0) group = across;
    const unsigned in_group = min(group, across) * down;
    const unsigned g = blockIdx.x / in_group;
    const unsigned p = blockIdx.x % in_group;
    const unsigned width = min(group, across - g * group);
    tile_row = p / width;
    tile_col = g * group + p % width;
}

template <int ROWS, int COLS, int WARPS, int ALIGN, bool CS, bool LDCS>
__global__ void __launch_bounds__(WARPS * 32) tile_kernel(DeviceMatrix<const Word> in, DeviceMatrix<Word> out,
                                                          unsigned group, unsigned down, unsigned across) {
    constexpr int kHalo = ALIGN / 4 == 1 ? 0 : ALIGN / 4;
    constexpr int kLoads = (ROWS + kHalo) / WARPS;
    static_assert((ROWS + kHalo) % WARPS == 0 && COLS % WARPS == 0);
    __shared__ Word tile[ROWS + kHalo][COLS + 1];
    unsigned tile_row, tile_col;
    place(group, down, across, tile_row, tile_col);
    const std::size_t row0 = static_cast<std::size_t>(tile_row) * ROWS;
    const std::size_t col0 = static_cast<std::size_t>(tile_col) * COLS;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    Word loaded[kLoads][COLS / 32];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const std::size_t row = row0 - kHalo + warp + i * WARPS;
#pragma unroll
        for (int j = 0; j < COLS / 32; ++j) {
            const std::size_t col = col0 + lane + j * 32;
            loaded[i][j] = row < in.rows() && col < in.cols() ? get<LDCS>(&in(row, col)) : 0;
        }
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
#pragma unroll
        for (int j = 0; j < COLS / 32; ++j)
            tile[warp + i * WARPS][lane + j * 32] = loaded[i][j];
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < COLS / WARPS; ++i) {
        const int x = warp + i * WARPS;
        const std::size_t col = col0 + x;
        const int shift =
            kHalo == 0 ? 0 : static_cast<int>(reinterpret_cast<std::uintptr_t>(&out(col, 0)) % ALIGN / 4);
#pragma unroll
        for (int j = 0; j < ROWS / 32; ++j) {
            const int y = lane + j * 32 - shift;
            const std::size_t row = row0 + y;
            const Word value = tile[kHalo + y][x];
            if (row < in.rows() && col < in.cols()) put<CS>(&out(col, row), value);
        }
    }
}

template <int ROWS, int COLS, int WARPS, int ALIGN, int GROUP, bool CS = false, bool LDCS = false>
void launch_tile(DeviceMatrix<const Word> in, DeviceMatrix<Word> out, cudaStream_t stream) {
    const auto down = static_cast<unsigned>(ceil_div<std::size_t>(in.rows() + ALIGN / 4 - 1, ROWS));
    const auto across = static_cast<unsigned>(ceil_div<std::size_t>(in.cols(), COLS));
    tile_kernel<ROWS, COLS, WARPS, ALIGN, CS, LDCS>
        <<<down * across, WARPS * 32, 0, stream>>>(in, out, GROUP, down, across);
    CUDA_CHECK_LAUNCH();
}

constexpr int kStepRows = 32;

template <int COLS, int WARPS, int ALIGN, bool CS>
__global__ void __launch_bounds__(WARPS * 32)
    stream_kernel(DeviceMatrix<const Word> in, DeviceMatrix<Word> out, unsigned strips,
                  std::size_t rows_per_block, std::size_t end_row) {
    constexpr int kRing = 2 * kStepRows;
    __shared__ Word ring[kRing][COLS + 1];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const std::size_t col0 = static_cast<std::size_t>(blockIdx.x % strips) * COLS;
    const std::size_t begin = blockIdx.x / strips * rows_per_block;
    const std::size_t end = begin + rows_per_block < end_row ? begin + rows_per_block : end_row;
    Word loaded[kStepRows / WARPS][COLS / 32];
    const auto fetch = [&](std::size_t first) {
#pragma unroll
        for (int i = 0; i < kStepRows / WARPS; ++i) {
            const std::size_t row = first + warp + i * WARPS;
#pragma unroll
            for (int j = 0; j < COLS / 32; ++j) {
                const std::size_t col = col0 + lane + j * 32;
                loaded[i][j] = row < in.rows() && col < in.cols() ? in(row, col) : 0;
            }
        }
    };
    const auto keep = [&](std::size_t first) {
#pragma unroll
        for (int i = 0; i < kStepRows / WARPS; ++i)
#pragma unroll
            for (int j = 0; j < COLS / 32; ++j)
                ring[first % kRing + warp + i * WARPS][lane + j * 32] = loaded[i][j];
    };
    if (ALIGN > 4) {
        fetch(begin - kStepRows);
        keep(begin - kStepRows);
    }
    fetch(begin);
    for (std::size_t row0 = begin; row0 < end; row0 += kStepRows) {
        keep(row0);
        __syncthreads();
        if (row0 + kStepRows < end) fetch(row0 + kStepRows);
#pragma unroll 4
        for (int i = 0; i < COLS / WARPS; ++i) {
            const int x = warp + i * WARPS;
            const std::size_t col = col0 + x;
            const std::size_t row =
                row0 + lane - (ALIGN == 4 ? 0 : reinterpret_cast<std::uintptr_t>(&out(col, 0)) % ALIGN / 4);
            const Word value = ring[row % kRing][x];
            if (row < in.rows() && col < in.cols()) put<CS>(&out(col, row), value);
        }
        __syncthreads();
    }
}

std::size_t pieces_of(std::size_t strips, std::size_t steps, std::size_t resident) {
    std::size_t best = 1;
    std::size_t best_time = std::numeric_limits<std::size_t>::max();
    const std::size_t most = std::min<std::size_t>(steps, ceil_div(4 * resident, strips));
    for (std::size_t pieces = 1; pieces <= most; ++pieces) {
        const std::size_t time = ceil_div(strips * pieces, resident) * (ceil_div(steps, pieces) + 1);
        if (time >= best_time) continue;
        best = pieces;
        best_time = time;
    }
    return best;
}

template <int COLS, int WARPS, int ALIGN, bool CS = false>
void launch_stream(DeviceMatrix<const Word> in, DeviceMatrix<Word> out, cudaStream_t stream) {
    const std::size_t end_row = in.rows() + ALIGN / 4 - 1;
    const std::size_t steps = ceil_div<std::size_t>(end_row, kStepRows);
    const std::size_t strips = ceil_div<std::size_t>(in.cols(), COLS);
    const auto kernel = stream_kernel<COLS, WARPS, ALIGN, CS>;
    const std::size_t resident = course::resident_blocks(kernel, WARPS * 32);
    const std::size_t per_block = ceil_div(steps, pieces_of(strips, steps, resident));
    const std::size_t pieces = ceil_div(steps, per_block);
    kernel<<<static_cast<unsigned>(strips * pieces), WARPS * 32, 0, stream>>>(
        in, out, static_cast<unsigned>(strips), per_block * kStepRows, end_row);
    CUDA_CHECK_LAUNCH();
}

template <bool CS>
__global__ void __launch_bounds__(256) pack_kernel(DeviceMatrix<const Word> in, DeviceMatrix<Word> out,
                                                   unsigned group, unsigned down, unsigned across) {
    __shared__ uint4 tile[64][16];
    unsigned tile_row, tile_col;
    place(group, down, across, tile_row, tile_col);
    const std::size_t row0 = static_cast<std::size_t>(tile_row) * 64;
    const std::size_t col0 = static_cast<std::size_t>(tile_col) * 64;
    const int tx = threadIdx.x % 16;
    const int ty = threadIdx.x / 16;
    uint4 a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const std::size_t row = row0 + ty * 4 + i;
        const std::size_t col = col0 + tx * 4;
        a[i] = row < in.rows() && col < in.cols() ? *reinterpret_cast<const uint4*>(&in(row, col))
                                                  : make_uint4(0, 0, 0, 0);
    }
    tile[tx * 4 + 0][ty ^ tx % 8] = make_uint4(a[0].x, a[1].x, a[2].x, a[3].x);
    tile[tx * 4 + 1][ty ^ tx % 8] = make_uint4(a[0].y, a[1].y, a[2].y, a[3].y);
    tile[tx * 4 + 2][ty ^ tx % 8] = make_uint4(a[0].z, a[1].z, a[2].z, a[3].z);
    tile[tx * 4 + 3][ty ^ tx % 8] = make_uint4(a[0].w, a[1].w, a[2].w, a[3].w);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const std::size_t row = row0 + tx * 4;
        const std::size_t col = col0 + ty * 4 + j;
        const uint4 pack = tile[ty * 4 + j][tx ^ ty % 8];
        if (row < in.rows() && col < in.cols()) put<CS>(reinterpret_cast<uint4*>(&out(col, row)), pack);
    }
}

template <int GROUP, bool CS = false>
void launch_packs(DeviceMatrix<const Word> in, DeviceMatrix<Word> out, cudaStream_t stream) {
    const auto down = static_cast<unsigned>(ceil_div<std::size_t>(in.rows(), 64));
    const auto across = static_cast<unsigned>(ceil_div<std::size_t>(in.cols(), 64));
    pack_kernel<CS><<<down * across, 256, 0, stream>>>(in, out, GROUP, down, across);
    CUDA_CHECK_LAUNCH();
}

std::string packs_only(const Problem& problem) {
    const bool fits = problem.packs_aligned && problem.rows % 4 == 0 && problem.cols % 4 == 0;
    return fits ? "" : "needs multiples of 4";
}

std::string words_only(const Problem& problem) {
    return problem.element_bytes == 4 ? "" : "moves words";
}

Transpose entry(const char* name, LauncherOf<Word> launch,
                std::string (*constraint)(const Problem&) = words_only) {
    return {name, "", {launch, nullptr}, variants().front().work, constraint};
}

}  // namespace

std::span<const Transpose> candidates() {
    static const std::array list = {
        entry("t32x32_a4_g0", launch_tile<32, 32, 8, 4, 0>),
        entry("t32x32_a4_g16", launch_tile<32, 32, 8, 4, 16>),
        entry("t32x32_a32_g16", launch_tile<32, 32, 8, 32, 16>),
        entry("t64x64_a4_g0", launch_tile<64, 64, 8, 4, 0>),
        entry("t64x64_a4_g1", launch_tile<64, 64, 8, 4, 1>),
        entry("t64x64_a4_g8", launch_tile<64, 64, 8, 4, 8>),
        entry("t64x64_a4_g32", launch_tile<64, 64, 8, 4, 32>),
        entry("t64x64_a4_g32_cs", launch_tile<64, 64, 8, 4, 32, true>),
        entry("t64x64_a32_g0", launch_tile<64, 64, 8, 32, 0>),
        entry("t64x64_a32_g1", launch_tile<64, 64, 8, 32, 1>),
        entry("t64x64_a32_g8", launch_tile<64, 64, 8, 32, 8>),
        entry("t64x64_a32_g32", launch_tile<64, 64, 8, 32, 32>),
        entry("t64x64_a32_g32_cs", launch_tile<64, 64, 8, 32, 32, true>),
        entry("t64x64_a32_g32_cs_ldcs", launch_tile<64, 64, 8, 32, 32, true, true>),
        entry("t64x64_a64_g32", launch_tile<64, 64, 8, 64, 32>),
        entry("t128x32_a32_g32", launch_tile<128, 32, 8, 32, 32>),
        entry("t128x64_a4_g16", launch_tile<128, 64, 16, 4, 16>),
        entry("t128x64_a128_g16", launch_tile<128, 64, 16, 128, 16>),
        entry("t128x64_a64_g16", launch_tile<128, 64, 16, 64, 16>),
        entry("t64x128_a32_g16", launch_tile<64, 128, 8, 32, 16>),
        entry("s128_a128", launch_stream<128, 8, 128>),
        entry("s128_a128_cs", launch_stream<128, 8, 128, true>),
        entry("s128_a32", launch_stream<128, 8, 32>),
        entry("s128_a4", launch_stream<128, 8, 4>),
        entry("s64_a128", launch_stream<64, 8, 128>),
        entry("s64_a128_w4", launch_stream<64, 4, 128>),
        entry("s32_a128_w4", launch_stream<32, 4, 128>),
        entry("v0", launch_packs<0>, packs_only),
        entry("v1", launch_packs<1>, packs_only),
        entry("v8", launch_packs<8>, packs_only),
        entry("v32", launch_packs<32>, packs_only),
        entry("v32_cs", launch_packs<32, true>, packs_only),
    };
    return list;
}

}  // namespace day06
