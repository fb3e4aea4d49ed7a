// The swizzle as one formula, for rows, accesses and elements of any size (swizzle.cu).
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace day06 {

// A tile in shared memory, which starts at a multiple of 128 bytes. Threads access `access` bytes
// at a time, aligned: a float 4, a float4 16, a row of an 8 x 8 matrix of ldmatrix 16.
struct SwizzledTile {
    unsigned row_bytes;
    unsigned access_bytes;
    unsigned element_bytes;
};

// Why the formula has no place for such a tile, or "". Accesses have 4, 8 or 16 bytes, and whole
// elements; rows have 2, 4, 8... accesses in up to 128 bytes, or a multiple of 128 bytes.
std::string why_no_swizzle(const SwizzledTile& tile);

// The column, in elements, at which element (row, col) is stored.
unsigned swizzled_column(const SwizzledTile& tile, unsigned row, unsigned col);

// Tiles of 64 rows, for counting. A block stores a tile of 64 rows by rows, and loads it by
// columns, with accesses of the tile's size: by the formula or, for comparison, without.
void launch_rows_then_columns(const SwizzledTile& tile, bool swizzle, unsigned* out, cudaStream_t stream);

}  // namespace day06
