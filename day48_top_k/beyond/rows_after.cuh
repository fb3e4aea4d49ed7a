// Day 48, beyond: the elements of a row that the passes before have left (many_best.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "keys.cuh"

namespace day48 {

// The keys of each row that come after last[row], for select_best. The others read as kNoKey, which
// is no better than any threshold.
struct RowsAfter {
    const float* distances;  // `cols` in each row
    std::size_t cols;
    float sign;
    const Key* last;  // the last key found in each row; 0, which is less than all keys: none yet

    struct Row {
        const float* distances;
        float sign;
        Key last;
        std::size_t count;
        __device__ Key operator[](std::size_t i) const {
            const Key key = key_of(sign * distances[i], static_cast<unsigned>(i));
            return key > last ? key : kNoKey;
        }
    };
    __device__ Row operator[](std::size_t row) const {
        return {distances + row * cols, sign, last[row], cols};
    }
};

// Queues select_best (top_k.cuh): a block for each of `count` rows. In top_k.cu.
void launch_select_after(const RowsAfter& rows, std::size_t count, unsigned k, float* values,
                         std::uint32_t* indices, cudaStream_t stream);

}  // namespace day48
