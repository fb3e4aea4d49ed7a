// The contents of the stand-in's CUtensorMap, and boxes of the matrix that it describes.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuda_on_cpu {

struct TensorMap {
    std::uint64_t signature;
    char* address;
    std::uint64_t dims[2];  // columns, rows
    std::uint64_t pitch;    // bytes from row to row
    // For a map of four extents: the number of such matrices, and the bytes from one to the next.
    std::uint64_t matrices[2];
    std::uint64_t matrix_pitch[2];
    std::uint32_t box[2];
    std::uint32_t element_size;
    std::uint32_t rank;
    CUtensorMapSwizzle swizzle;
    bool fill_with_nan;
    // Made by cuTensorMapEncodeIm2col(): the rows of a box are pixels. `dims` are the channels of a
    // pixel and the columns of an image, `matrices` the rows of an image and the images.
    bool im2col = false;
    struct Pixels {
        // Columns, then rows. The bounding box of an image reaches from `lower`, relative to the
        // first pixel, to `upper`, relative to the last one, in steps.
        std::int8_t lower[2];
        std::int8_t upper[2];
        std::uint8_t step[2];
        // For one load: `first` is the column, row and image of its first pixel in the bounding
        // box; `offset` is how far to the right of and below each pixel of the box the load reads.
        std::uint16_t offset[2];
        int first[3];
    } pixels = {};

    // Null: the map was made neither by cuTensorMapEncodeTiled() nor by cuTensorMapEncodeIm2col().
    static const TensorMap* of(const CUtensorMap* map);

    // Matrix (i, j) of a map of four extents, as a map of two. A matrix out of range has no rows.
    TensorMap matrix(int i, int j) const;
    // A load of an im2col map, as a map of two extents: row i is pixel i of the load.
    TensorMap column_of_pixels(const int (&first)[3], const std::uint16_t (&offset)[2]) const;
    // The last column or row (`direction` 0 or 1) that the bounding box may have.
    std::int64_t last_of_box(int direction) const {
        const std::uint64_t extent = direction == 0 ? dims[1] : matrices[0];
        return static_cast<std::int64_t>(extent) - 1 + pixels.upper[direction];
    }

    std::size_t box_row_bytes() const { return std::size_t{box[0]} * element_size; }
    std::size_t box_bytes() const { return box_row_bytes() * box[1]; }
    // The address of the first column of each row of the box; null: out of range.
    std::vector<char*> row_addresses(int row) const;
    // The in-range parts of the rows of the box.
    struct Row {
        char* begin;
        std::size_t bytes;
    };
    std::vector<Row> rows_within(int column, int row) const;
    // May kernels access all in-range elements of the box?
    bool box_accessible(int column, int row) const;
    // Loads the box whose first element is (column, row) to shared memory. Out-of-range elements
    // are filled with zero or NaN.
    void load(int column, int row, void* shared) const;
    // Stores the box from `data`, a copy of the shared memory at the address `shared`. Out-of-range
    // elements are skipped in pieces of 16 bytes, so the last piece of a row is written as a whole.
    void store(int column, int row, const std::vector<unsigned char>& data, const void* shared) const;
};

// The swizzled address of the byte at `address` of shared memory, for 16-byte pieces within `span`
// bytes (32, 64 or 128; less: no swizzle). The address bits from 7 on, log2(pieces per span) of
// them, are XORed into those from 4 on.
constexpr std::uintptr_t swizzled(std::uintptr_t address, unsigned span) {
    return span < 32 ? address : address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}
constexpr unsigned span_of(CUtensorMapSwizzle swizzle) {
    return 16u << swizzle;
}

}  // namespace cuda_on_cpu
