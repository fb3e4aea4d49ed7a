// Inline PTX: matrices of a warp (PTX ISA, ldmatrix, stmatrix, movmatrix, mma).
#pragma once

#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/ptx_memory.h"
#include "cuda_on_cpu/tensor_core.h"

namespace cuda_on_cpu::ptx::isa {

// Load and store 1, 2 or 4 matrices, and transpose one among the lanes. The errors are those of
// ldmatrix_x4 (tensor_core.h).
void load_matrices(unsigned* r, int count, bool transpose, const void* row, Site site);
void store_matrices(void* row, const unsigned* r, int count, bool transpose, Site site);
std::uint32_t transposed(std::uint32_t r, Site site);

// Lanes that do not supply a row address may pass anything.
template <int kCount>
__forceinline__ void* row_at(std::uint64_t address, Site site) {
    return current_lane < 8 * kCount ? shared_pointer(address, 16, site) : nullptr;
}
template <int kCount, unsigned F>
__forceinline__ void ldmatrix(std::uint32_t (&r)[kCount], std::uint64_t address, Site site = Site::here()) {
    constexpr bool kTranspose = (F & flag::trans) != 0;
    load_matrices(r, kCount, kTranspose, row_at<kCount>(address, site), site);
}
template <int kCount, unsigned F>
__forceinline__ void stmatrix(std::uint64_t address, List<std::uint32_t, kCount> r,
                              Site site = Site::here()) {
    constexpr bool kTranspose = (F & flag::trans) != 0;
    store_matrices(row_at<kCount>(address, site), r.word, kCount, kTranspose, site);
}
inline std::uint32_t movmatrix(std::uint32_t a, Site site = Site::here()) {
    return transposed(a, site);
}

// D = A B + C. Products are exact and summed in double, or in integers, then rounded once: more
// exact than any GPU.
enum class MatrixElement { f16, bf16, tf32, e4m3, e5m2, u8, s8, f64 };
enum class MatrixSum { f16, f32, s32, f64 };
struct MatrixShape {
    unsigned m, n, k;
    MatrixSum sum;
    MatrixElement a, b;
    bool saturates;
};
// Fragments of a lane, laid out as in the PTX ISA. `d` holds C before the call.
void multiply_matrices(const MatrixShape& shape, void* d, const void* a, const void* b, Site site);

template <class T>
inline constexpr auto kElement = MatrixElement::f16;
template <>
inline constexpr auto kElement<bf16> = MatrixElement::bf16;
template <>
inline constexpr auto kElement<tf32> = MatrixElement::tf32;
template <>
inline constexpr auto kElement<e4m3> = MatrixElement::e4m3;
template <>
inline constexpr auto kElement<e5m2> = MatrixElement::e5m2;
template <>
inline constexpr auto kElement<u8> = MatrixElement::u8;
template <>
inline constexpr auto kElement<s8> = MatrixElement::s8;
template <>
inline constexpr auto kElement<f64> = MatrixElement::f64;
template <class T>
inline constexpr auto kSum = MatrixSum::f32;
template <>
inline constexpr auto kSum<f16> = MatrixSum::f16;
template <>
inline constexpr auto kSum<s32> = MatrixSum::s32;
template <>
inline constexpr auto kSum<f64> = MatrixSum::f64;

template <unsigned kM, unsigned kN, unsigned kK, class Sum, class A, class B, unsigned F = 0, class Word,
          int kD, class Operand, int kA, int kB>
__forceinline__ void mma(Word (&d)[kD], List<Operand, kA> a, List<Operand, kB> b, List<Word, kD> c,
                         Site site = Site::here()) {
    std::memcpy(d, c.word, sizeof d);
    multiply_matrices({kM, kN, kK, kSum<Sum>, kElement<A>, kElement<B>, (F & flag::satfinite) != 0}, d,
                      a.word, b.word, site);
}

// ---- Warpgroups --------------------------------------------------------------------------------------------------------

using cuda_on_cpu::ptx::wgmma_commit;
using cuda_on_cpu::ptx::wgmma_fence;
inline void wgmma_wait_group(std::uint32_t pending, Site site = Site::here()) {
    wait_for_products(pending, site);
}

// The sums must be adjacent in memory, as elements of an array are, because the product is computed
// later, in place.
void start_product(void* const* sums, unsigned count, std::uint64_t a, std::uint64_t b, bool adds,
                   const ProductOf& product, Site site);
// Fails for what is not supported: negated operands, and a transposed A.
void check_scales(int a, int b, int transpose_a, Site site);

template <class Format_>
struct Half {
    using Format = Format_;
    std::uint16_t bits;
};
template <class Format_>
struct Byte {
    using Format = Format_;
    std::uint8_t bits;
};

template <class A, unsigned kN, int kCount>
__forceinline__ void wgmma_of_halves(Places<kCount> d, std::uint64_t a, std::uint64_t b, bool adds,
                                     std::uint32_t scale_a, std::uint32_t scale_b, std::uint32_t transpose_a,
                                     std::uint32_t transpose_b, Site site = Site::here()) {
    static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "wgmma: N is 8 to 256, in steps of 8");
    check_scales(static_cast<int>(scale_a), static_cast<int>(scale_b), static_cast<int>(transpose_a), site);
    using T = Half<typename A::Format>;
    start_product(d.place, kCount, a, b, adds,
                  transpose_b != 0 ? product_of<T, true>() : product_of<T, false>(), site);
}
template <class A, unsigned kN, int kCount>
__forceinline__ void wgmma_of_bytes(Places<kCount> d, std::uint64_t a, std::uint64_t b, bool adds,
                                    std::uint32_t scale_a, std::uint32_t scale_b, Site site = Site::here()) {
    static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "wgmma: N is 8 to 256, in steps of 8");
    check_scales(static_cast<int>(scale_a), static_cast<int>(scale_b), 0, site);
    start_product(d.place, kCount, a, b, adds, product_of<Byte<typename A::Format>, false>(), site);
}
template <unsigned kN, int kCount>
__forceinline__ void wgmma_of_integers(Places<kCount> d, std::uint64_t a, std::uint64_t b, bool adds,
                                       Site site = Site::here()) {
    static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "wgmma: N is 8 to 256, in steps of 8");
    start_product(d.place, kCount, a, b, adds, product_of<std::int8_t, false>(), site);
}

}  // namespace cuda_on_cpu::ptx::isa
