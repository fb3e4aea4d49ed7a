// Day 6, beyond: the swizzle as one formula.
//
// Shared memory serves an access of 4 bytes to the 32 lanes of a warp at the same time, one of 8
// bytes to 16 lanes, one of 16 bytes to 8 lanes: 128 bytes, a *phase*. 32 banks of 4 bytes repeat
// after 128 bytes, a *line*. So cut the tile into units of one access: a line has
//
//     P = 128 / access bytes
//
// units, a phase has P lanes, and the lanes do not meet in a bank when their units are at P
// different places of a line. A row has U = row bytes / access bytes units. Unit u of row r goes to
// unit
//
//     u XOR (r / L mod min(P, U)),      L = max(1, 128 / row bytes), the rows in a line
//
//     row bytes   access   P   U    L   the XOR          where
//     128         4        32  32   1   r mod 32         swizzled: 32 floats in a row
//     256         16       8   16   1   r mod 8          vectorised: 64 floats
//     128         16       8   8    1   r mod 8          day 40: 64 halves
//     64          16       8   4    2   r / 2 mod 4      day 40, To try: 32 halves
//
// Why no two lanes meet:
//
// - Within a row, XOR by a number below min(P, U) permutes the units of each aligned group of
//   min(P, U). So nothing is lost, no unit leaves its line, and lanes that access adjacent units of
//   a row, P of them or all that a line has, still take different places.
// - Down a column, P lanes access unit u of P consecutive rows. If rows have at least a line (L =
//   1, P <= U), their XORs are P different numbers below P, so the places u XOR r mod P are
//   different, too. If L rows share a line, write r = L q + s: s says which part of the line the
//   row has, and q mod U is the XOR. P = L U consecutive rows have every pair (s, q mod U) once.
//   Rows with different s are in different parts; rows with the same s have different XORs, so the
//   unit is at different places of that part.
//
// Both need P, U or L to be powers of two: 96-byte rows have no swizzle, but padding works.
#include <cstddef>
#include <cstdint>

#include "common/check/require.hpp"
#include "common/device/launch.hpp"
#include "swizzle.hpp"

namespace day06 {
namespace {

constexpr unsigned kLine = 128;  // bytes: 32 banks of 4

constexpr bool is_power_of_two(unsigned n) {
    return n != 0 && (n & (n - 1)) == 0;
}

}  // namespace

std::string why_no_swizzle(const SwizzledTile& tile) {
    const auto [row, access, element] = tile;
    if (access != 4 && access != 8 && access != 16)
        return "access_bytes is " + std::to_string(access) + "; expected 4, 8 or 16";
    if (!is_power_of_two(element) || element > access)
        return "element_bytes is " + std::to_string(element) + "; expected 1, 2, 4... up to access_bytes";
    if (row % kLine == 0 && row != 0) return "";
    if (is_power_of_two(row) && row >= 2 * access) return "";
    return "row_bytes is " + std::to_string(row) +
           "; expected a multiple of 128, or a power of two of at least two accesses";
}

unsigned swizzled_column(const SwizzledTile& tile, unsigned row, unsigned col) {
    const unsigned per_unit = tile.access_bytes / tile.element_bytes;
    const unsigned units_of_line = kLine / tile.access_bytes;
    const unsigned units_of_row = tile.row_bytes / tile.access_bytes;
    const unsigned rows_of_line = tile.row_bytes < kLine ? kLine / tile.row_bytes : 1;
    const unsigned turn = row / rows_of_line % (units_of_line < units_of_row ? units_of_line : units_of_row);
    return (col / per_unit ^ turn) * per_unit + col % per_unit;
}

namespace {

// The same for a kernel, in units.
template <unsigned ROW_BYTES, unsigned ACCESS>
__device__ unsigned swizzled_unit(unsigned row, unsigned unit) {
    constexpr unsigned P = kLine / ACCESS;
    constexpr unsigned U = ROW_BYTES / ACCESS;
    constexpr unsigned L = ROW_BYTES < kLine ? kLine / ROW_BYTES : 1;
    return unit ^ (row / L % (P < U ? P : U));
}

template <unsigned BYTES>
struct alignas(BYTES) Access {
    unsigned words[BYTES / 4];
};

constexpr unsigned kRows = 64;
constexpr unsigned kThreads = 64;

// Idea: a warp stores adjacent units of rows, and loads a unit of 32 consecutive rows. out[i] is
// the sum of what thread i loads.
template <unsigned ROW_BYTES, unsigned ACCESS, bool SWIZZLE>
__global__ void rows_then_columns(unsigned* out) {
    constexpr unsigned UNITS = ROW_BYTES / ACCESS;
    alignas(kLine) __shared__ Access<ACCESS> tile[kRows][UNITS];
    const auto place = [](unsigned row, unsigned unit) {
        return SWIZZLE ? swizzled_unit<ROW_BYTES, ACCESS>(row, unit) : unit;
    };
    for (unsigned i = threadIdx.x; i < kRows * UNITS; i += kThreads) {
        Access<ACCESS> unit;
        for (unsigned w = 0; w < ACCESS / 4; ++w)
            unit.words[w] = i * (ACCESS / 4) + w;
        tile[i / UNITS][place(i / UNITS, i % UNITS)] = unit;
    }
    __syncthreads();
    unsigned sum = 0;
    for (unsigned unit = 0; unit < UNITS; ++unit) {
        const Access<ACCESS> loaded = tile[threadIdx.x][place(threadIdx.x, unit)];
        for (const unsigned word : loaded.words)
            sum += word * (unit + 1);
    }
    out[threadIdx.x] = sum;
}

template <unsigned ROW_BYTES, unsigned ACCESS>
bool launch_if(const SwizzledTile& tile, bool swizzle, unsigned* out, cudaStream_t stream) {
    if (tile.row_bytes != ROW_BYTES || tile.access_bytes != ACCESS) return false;
    course::launch(
        swizzle ? rows_then_columns<ROW_BYTES, ACCESS, true> : rows_then_columns<ROW_BYTES, ACCESS, false>,
        {.grid = 1, .block = kThreads, .stream = stream}, out);
    return true;
}

}  // namespace

void launch_rows_then_columns(const SwizzledTile& tile, bool swizzle, unsigned* out, cudaStream_t stream) {
    const bool launched =
        launch_if<128, 4>(tile, swizzle, out, stream) || launch_if<256, 16>(tile, swizzle, out, stream) ||
        launch_if<128, 16>(tile, swizzle, out, stream) || launch_if<64, 16>(tile, swizzle, out, stream) ||
        launch_if<32, 8>(tile, swizzle, out, stream);
    course::require(launched, "rows_then_columns: a row has ", tile.row_bytes, " bytes and an access ",
                    tile.access_bytes,
                    "; expected 128 and 4, 256 and 16, 128 and 16, 64 and 16, or 32 and 8");
}

}  // namespace day06
