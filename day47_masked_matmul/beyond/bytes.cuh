// Day 47, beyond: a mask in an array of bytes, element by element.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "common/device/operands.hpp"

namespace day47 {

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
