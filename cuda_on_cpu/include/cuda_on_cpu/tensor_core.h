// Matrix products of a warp (PTX ISA, mma; day code reaches them through common/ptx.cuh).
#pragma once

#include <bit>
#include <cstdint>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu::ptx {

// As GPUs do it: half a unit of the last place is added to the bits, unless they are an Inf or a NaN, and the 13 lowest
// become 0. So a NaN whose payload is in those bits alone becomes Inf, there as here.
inline unsigned to_tf32(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return (finite ? bits + 0x1000u : bits) & 0xffffe000u;
}

// D += A B. Products are exact and summed in double, then rounded once to float: closer than any GPU, which
// cuts off bits as it sums. As there, the 13 lowest bits of A and B do not count.
void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                      Site site = Site::here());

}  // namespace cuda_on_cpu::ptx
