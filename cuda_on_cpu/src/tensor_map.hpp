// What a CUtensorMap of the stand-in holds, and boxes of the matrix that it describes.
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
    // Of a map of four extents: how many such matrices there are, and the bytes between them.
    std::uint64_t matrices[2];
    std::uint64_t matrix_pitch[2];
    std::uint32_t box[2];
    std::uint32_t element_size;
    std::uint32_t rank;
    CUtensorMapSwizzle swizzle;
    bool fill_with_nan;
    // Of cuTensorMapEncodeIm2col(): the rows of a box are pixels. `dims` are the channels of a
    // pixel and the columns of an image, `matrices` the rows of an image and the images.
    bool im2col = false;
    struct Pixels {
        // Columns, then rows. The bounding box of an image goes from `lower`, seen from the first
        // pixel, to `upper`, seen from the last one, in steps.
        std::int8_t lower[2];
        std::int8_t upper[2];
        std::uint8_t step[2];
        // Of one load: column, row and image of its first pixel in the bounding box; and how far
        // to the right of and below each pixel of the box it reads.
        std::uint16_t offset[2];
        int first[3];
    } pixels = {};

    // Null: not one that cuTensorMapEncodeTiled() or cuTensorMapEncodeIm2col() has made.
    static const TensorMap* of(const CUtensorMap* map);

    // Matrix (i, j) of four extents, as a map of two. One that does not exist has no rows.
    TensorMap matrix(int i, int j) const;
    // Of an im2col map, as a map of two extents: row i is pixel i of a load.
    TensorMap column_of_pixels(const int (&first)[3], const std::uint16_t (&offset)[2]) const;
    // The last column or row (`direction` 0 or 1) that the bounding box may have.
    std::int64_t last_of_box(int direction) const {
        const std::uint64_t extent = direction == 0 ? dims[1] : matrices[0];
        return static_cast<std::int64_t>(extent) - 1 + pixels.upper[direction];
    }

    std::size_t box_row_bytes() const { return std::size_t{box[0]} * element_size; }
    std::size_t box_bytes() const { return box_row_bytes() * box[1]; }
    // Where each row of the box has its first column in memory; null: outside the matrix.
    std::vector<char*> row_addresses(int row) const;
    // The rows of the box, as far as they lie within the matrix.
    struct Row {
        char* begin;
        std::size_t bytes;
    };
    std::vector<Row> rows_within(int column, int row) const;
    // Is all of the box that lies within the matrix memory that kernels may use?
    bool box_accessible(int column, int row) const;
    // The box whose first element is (column, row), to shared memory; zeros, or NaN, stand for what
    // lies outside the matrix.
    void load(int column, int row, void* shared) const;
    // And back, from a copy of shared memory that began at the address `shared`. What lies outside
    // the matrix is left out in pieces of 16 bytes: the last piece of a row is written as a whole.
    void store(int column, int row, const std::vector<unsigned char>& data, const void* shared) const;
};

// The place of the byte at `address` of shared memory when 16-byte pieces are swizzled within
// `span` bytes (32, 64 or 128; less: not at all): the address's bits from 7 on, as many as there
// are pieces in a span, are added to those from 4 on, without carry.
constexpr std::uintptr_t swizzled(std::uintptr_t address, unsigned span) {
    return span < 32 ? address : address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}
constexpr unsigned span_of(CUtensorMapSwizzle swizzle) {
    return 16u << swizzle;
}

}  // namespace cuda_on_cpu
