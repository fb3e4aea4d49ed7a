// Day 47: the two masks, element by element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/device/factors.hpp"

namespace day47 {

// Keeps elements near the diagonal: -below <= col - row <= above. Causal attention: above = 0, and
// `below` is larger than the matrix. Both are between -2^31 and 2^31, and -below <= above.
struct Band {
    int below;
    int above;

    __device__ const Band& of(std::size_t) const { return *this; }  // one band for all products

    // One comparison for both ends: below the band the difference wraps to more than the band's
    // width.
    __device__ bool keeps(std::size_t row, std::size_t col) const {
        const unsigned from_end =
            static_cast<unsigned>(col) - static_cast<unsigned>(row) + static_cast<unsigned>(below);
        return from_end <= static_cast<unsigned>(below) + static_cast<unsigned>(above);
    }
};

// Keeps elements whose byte is not 0. One array for all products, or one for each of them.
struct Bytes {
    course::Batch<const std::uint8_t> arrays;
    bool one_for_all;

    struct Array {
        course::DeviceMatrix<const std::uint8_t> bytes;
        __device__ bool keeps(std::size_t row, std::size_t col) const { return bytes(row, col) != 0; }
    };
    __device__ Array of(std::size_t product) const { return {arrays[one_for_all ? 0 : product]}; }
};

}  // namespace day47
