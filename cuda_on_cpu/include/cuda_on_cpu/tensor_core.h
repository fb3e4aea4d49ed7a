// Matrix products of a warp and the loads for them (PTX ISA, mma and ldmatrix; day code reaches
// them through common/device/ptx.cuh).
#pragma once

#include <bit>
#include <cstdint>

#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu::ptx {

// As on a GPU: half a unit of the last place is added to the bits, unless they are an Inf or a NaN,
// and the 13 lowest bits become 0. A NaN whose payload is only in those bits therefore becomes Inf,
// on both.
inline unsigned to_tf32(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return (finite ? bits + 0x1000u : bits) & 0xffffe000u;
}

// D += A B. Products are exact and summed in double, then rounded once to float: more exact than
// any GPU, which cuts off bits as it sums. As there, the 13 lowest bits of TF32 elements of A and B
// are ignored.
void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                      Site site = Site::here());
void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                      Site site = Site::here());
void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       Site site = Site::here());

// The same for 8-bit floating point (PTX ISA: from compute capability 8.9 on).
void mma_m16n8k32_e4m3(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       Site site = Site::here());
void mma_m16n8k32_e5m2(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       Site site = Site::here());

// D += A B in integers; sums that overflow wrap.
void mma_m16n8k32_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Site site = Site::here());

// Matrices of 8 x 8 elements of 16 bits from shared memory. It is an error if a row that is used is
// not 16-byte aligned, or not in the block's shared memory.
void ldmatrix_x1(unsigned (&r)[1], const void* row, Site site = Site::here());
void ldmatrix_x2(unsigned (&r)[2], const void* row, Site site = Site::here());
void ldmatrix_x4(unsigned (&r)[4], const void* row, Site site = Site::here());
void ldmatrix_x2_trans(unsigned (&r)[2], const void* row, Site site = Site::here());
void ldmatrix_x4_trans(unsigned (&r)[4], const void* row, Site site = Site::here());

// Stores back to shared memory.
void stmatrix_x4(void* row, const unsigned (&r)[4], Site site = Site::here());
void stmatrix_x4_trans(void* row, const unsigned (&r)[4], Site site = Site::here());

}  // namespace cuda_on_cpu::ptx
