// The part of a row that a thread keeps in registers.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/device/octet.cuh"
#include "quantization.hpp"
#include "ranges.cuh"

namespace day30 {

using course::ByteOctet;

constexpr int kPacks = 4;  // octets of a thread

// Row or chunk of a row that kGroupThreads threads keep in registers: kPacks octets of each, those
// of adjacent threads side by side.
template <class T, int kGroupThreads, bool kAligned>
class RowShare {
  public:
    static constexpr std::size_t kCapacity = std::size_t{kGroupThreads} * kPacks * kOctet;

    __device__ void load(const T* row, std::size_t cols, int thread) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            octet_[p] = Octet<T>::template load<kAligned>(row, col(p, thread), cols);
    }

    template <Scheme kScheme>
    __device__ Range range() const {
        return range_of<kScheme>(octet_, kPacks);
    }

    // Stores quantize(octet) for each octet. They are streaming stores, whose lines the L2 cache
    // evicts first.
    template <class AnyQuantizer>
    __device__ void store(std::int8_t* row, std::size_t cols, int thread,
                          const AnyQuantizer& quantize) const {
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
            if (col(p, thread) < cols) store_streaming(quantize(octet_[p]), row, col(p, thread), cols);
    }

  private:
    static __device__ std::size_t col(int pack, int thread) {
        return static_cast<std::size_t>(pack * kGroupThreads + thread) * kOctet;
    }

    static __device__ void store_streaming(const ByteOctet& bytes, std::int8_t* row, std::size_t col,
                                           std::size_t cols) {
        if (kAligned && col + kOctet <= cols) {
            uint2 words;
            std::memcpy(&words, &bytes, sizeof(words));
            __stcs(reinterpret_cast<uint2*>(row + col), words);
        } else {
            course::store_bytes<false>(bytes, row, col, cols);
        }
    }

    Octet<T> octet_[kPacks];
};

}  // namespace day30
