// Matrix products of a warp and what feeds them (PTX ISA, mma and ldmatrix; day code reaches them
// through common/device/ptx.cuh).
#pragma once

#include <bit>
#include <cstdint>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu::ptx {

// As GPUs do it: half a unit of the last place is added to the bits, unless they are an Inf or a
// NaN, and the 13 lowest become 0. So a NaN whose payload is in those bits alone becomes Inf, there
// as here.
inline unsigned to_tf32(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return (finite ? bits + 0x1000u : bits) & 0xffffe000u;
}

// D += A B. Products are exact and summed in double, then rounded once to float: closer than any
// GPU, which cuts off bits as it sums. As there, the 13 lowest bits of A and B do not count where
// they are TF32.
void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                      Site site = Site::here());
void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                      Site site = Site::here());
void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       Site site = Site::here());

// The same of 8-bit floating point (PTX ISA: from compute capability 8.9 on).
void mma_m16n8k32_e4m3(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       Site site = Site::here());
void mma_m16n8k32_e5m2(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       Site site = Site::here());

// D += A B in integers; sums that leave the range wrap.
void mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site = Site::here());

// Matrices of 8 x 8 elements of 16 bits from shared memory. An error: a row that counts and is not
// at a multiple of 16 bytes, or not in the block's shared memory.
void ldmatrix_x1(unsigned (&r)[1], const void* row, Site site = Site::here());
void ldmatrix_x2(unsigned (&r)[2], const void* row, Site site = Site::here());
void ldmatrix_x4(unsigned (&r)[4], const void* row, Site site = Site::here());
void ldmatrix_x2_trans(unsigned (&r)[2], const void* row, Site site = Site::here());
void ldmatrix_x4_trans(unsigned (&r)[4], const void* row, Site site = Site::here());

// And back to shared memory.
void stmatrix_x4(void* row, const unsigned (&r)[4], Site site = Site::here());
void stmatrix_x4_trans(void* row, const unsigned (&r)[4], Site site = Site::here());

}  // namespace cuda_on_cpu::ptx
