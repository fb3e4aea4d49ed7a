// Matrices of a warp (nvcuda::wmma): __half and __nv_bfloat16 with sums in float (__half also with
// sums in __half), bytes with sums in int, tf32 with sums in float, double.
//
// CUDA leaves open which lane holds which elements. Many kernels rely on what GPUs since Turing do,
// and so does the stand-in: a fragment is made of the fragments of mma.sync (PTX ISA, "Matrix
// Fragments for mma"), 16 rows of A, 8 columns of B, 16 x 8 sums at a time. As on a GPU, A and B of
// __half have 16 elements per lane: the elements of the matrix, then the same again.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

// A lane's part of D = A B + C, of 16 x 16 elements each.
struct WmmaOperands {
    float* d;
    const void* a;
    const void* b;
    const float* c;
    Decode decode;
    Site site;
};
void multiply_fragments(WmmaOperands own);
// Checks that all lanes of the warp are here, with the same pointer and leading dimension (in
// elements of `element_size` bytes), and that these are aligned: the pointer to 32 bytes, the
// leading dimension to 16 bytes.
void check_fragment_access(const void* pointer, unsigned leading_dimension, std::size_t element_size,
                           const char* name, Site site);

// A lane's part of a product of fragments of any other shape or type. Fails unless all lanes of the
// warp are here.
struct AnyWmmaOperands {
    void* d;
    const void* a;
    const void* b;
    const void* c;
    // Integer sums saturate; otherwise they wrap.
    bool saturate;
    Site site;
};
void require_whole_warp(const Lanes& lanes, const char* name, Site site);

}  // namespace cuda_on_cpu

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};  // 32 bits, of which the last 13 are ignored
}  // namespace precision

namespace detail {

template <class T>
struct Stored {
    using Type = T;
};
template <>
struct Stored<precision::tf32> {
    using Type = float;
};

template <int M, int N, int K, class T>
constexpr bool is_shape() {
    if constexpr (std::is_same_v<T, precision::tf32>) return M == 16 && N == 16 && K == 8;
    if constexpr (std::is_same_v<T, double>) return M == 8 && N == 8 && K == 4;
    if constexpr (std::is_same_v<T, float>) {  // sums
        return K == 8 ? M == 16 && N == 16 : is_shape<M, N, K, int>();
    }
    return K == 16 && ((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32));
}

template <class Use, int M, int K>
inline constexpr int kRows = std::is_same_v<Use, matrix_b> ? K : M;
template <class Use, int N, int K>
inline constexpr int kColumns = std::is_same_v<Use, matrix_a> ? K : N;
template <class Use, class T>
inline constexpr bool kRepeats = std::is_same_v<T, __half> && !std::is_same_v<Use, accumulator>;

struct Place {
    unsigned row;
    unsigned column;
};

// Where element `i` of that lane is in the matrix. For mma.sync, lane = 4 * group + in_group. A
// register of A or B holds elements that are consecutive along k, and so do the registers of the
// four lanes of a group.
template <class Use, int M, int N, int K, class T>
constexpr Place place_of(unsigned lane, unsigned i) {
    const unsigned group = lane / 4, in_group = lane % 4;
    if constexpr (std::is_same_v<Use, accumulator>) {
        constexpr unsigned kTileRows = M == 8 ? 8 : 16, kOfTile = kTileRows * 8 / 32, kAcross = N / 8;
        const unsigned tile = i / kOfTile, j = i % kOfTile;
        return {kTileRows * (tile / kAcross) + group + 8 * (j / 2),
                8 * (tile % kAcross) + 2 * in_group + j % 2};
    } else {
        constexpr unsigned kInRegister = std::is_same_v<T, double> ? 1 : 4 / sizeof(typename Stored<T>::Type);
        constexpr bool kIsA = std::is_same_v<Use, matrix_a>;
        // The group counts rows of A, columns of B.
        constexpr unsigned kLines = kIsA && M != 8 ? 16 : 8, kOfTile = kLines * K / 32;
        constexpr unsigned kAll = (kIsA ? M : N) * K / 32;
        const unsigned tile = i % kAll / kOfTile, j = i % kOfTile, number = j / kInRegister;
        const unsigned line = kLines * tile + group + (kLines == 16 ? 8 * (number % 2) : 0);
        const unsigned k =
            kInRegister * in_group + j % kInRegister + K / 2 * (kLines == 16 ? number / 2 : number);
        return kIsA ? Place{line, k} : Place{k, line};
    }
}

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
    static_assert(
        detail::is_shape<M, N, K, T>(),
        "fragments are of 16 x 16 x 16, 32 x 8 x 16, 8 x 32 x 16; of tf32 16 x 16 x 8, of double 8 x 8 x 4");

  public:
    using element_type = typename detail::Stored<T>::Type;
    using storage_element_type = element_type;
    static constexpr int kRows = detail::kRows<Use, M, K>;
    static constexpr int kColumns = detail::kColumns<Use, N, K>;
    static constexpr int num_elements = detail::kRepeats<Use, T> ? 16 : kRows * kColumns / 32;
    static constexpr int num_storage_elements = num_elements;

    element_type x[num_elements];
};

namespace detail {

// Calls visit(element, its offset in memory).
template <class Use, int M, int N, int K, class T, class Layout, class Visit>
void visit_elements(const fragment<Use, M, N, K, T, Layout>& f, bool row_major, unsigned leading_dimension,
                    Visit visit) {
    for (unsigned i = 0; i < f.num_elements; ++i) {
        const auto [row, column] = place_of<Use, M, N, K, T>(cuda_on_cpu::current_lane, i);
        visit(i, row_major ? row * leading_dimension + column : column * leading_dimension + row);
    }
}

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const typename detail::Stored<T>::Type* from,
                      unsigned leading_dimension, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(from, leading_dimension, sizeof *from, "load_matrix_sync", site);
    detail::visit_elements(f, std::is_same_v<Layout, row_major>, leading_dimension,
                           [&](unsigned i, unsigned place) { f.x[i] = from[place]; });
}
template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const std::type_identity_t<T>* from,
                      unsigned leading_dimension, layout_t layout,
                      cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(from, leading_dimension, sizeof *from, "load_matrix_sync", site);
    detail::visit_elements(f, layout == mem_row_major, leading_dimension,
                           [&](unsigned i, unsigned place) { f.x[i] = from[place]; });
}
template <int M, int N, int K, class T>
void store_matrix_sync(std::type_identity_t<T>* to, const fragment<accumulator, M, N, K, T>& f,
                       unsigned leading_dimension, layout_t layout,
                       cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(to, leading_dimension, sizeof *to, "store_matrix_sync", site);
    detail::visit_elements(f, layout == mem_row_major, leading_dimension,
                           [&](unsigned i, unsigned place) { to[place] = f.x[i]; });
}

template <class Use, int M, int N, int K, class T, class Layout>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& f, const typename detail::Stored<T>::Type& value) {
    for (auto& element : f.x)
        element = value;
}

// Rounds to the nearest tf32 number; if two are equally near, to the one further from zero.
inline float __float_to_tf32(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
    return std::bit_cast<float>((is_finite ? bits + 0x1000u : bits) & 0xffffe000u);
}

namespace detail {

// Sums of integers fit into 64 bits; sums of real numbers are rounded once, at the end.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, long long, double>;

template <class T>
Sum<T> number(const typename Stored<T>::Type& x) {
    if constexpr (std::is_same_v<T, precision::tf32>) {
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffffe000u);
    } else if constexpr (std::is_arithmetic_v<T>) {
        return static_cast<Sum<T>>(x);
    } else {
        return static_cast<float>(x);
    }
}

template <class D>
D rounded(Sum<D> sum, bool saturate) {
    if constexpr (std::is_integral_v<D>) {
        const long long low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
        return static_cast<D>(saturate ? std::clamp(sum, low, high) : sum);
    } else if constexpr (std::is_same_v<D, double>) {
        return sum;
    } else {
        return static_cast<D>(static_cast<float>(sum));
    }
}

template <int M, int N, int K, class T, class C, class D>
void multiply(const cuda_on_cpu::Lanes& lanes) {
    using cuda_on_cpu::AnyWmmaOperands;
    const auto& first = lanes.at<AnyWmmaOperands>(static_cast<unsigned>(std::countr_zero(lanes.mask)));
    cuda_on_cpu::require_whole_warp(lanes, "mma_sync", first.site);
    using Element = typename Stored<T>::Type;
    Sum<T> a[M * K], b[K * N], d[M * N];
    // The elements of a matrix that has `columns`, in row-major order.
    const auto all = [&]<class Use, class Type>(Use, Type, unsigned count, unsigned columns, auto visit) {
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned i = 0; i < count / 32; ++i) {
                const auto [row, column] = place_of<Use, M, N, K, Type>(lane, i);
                visit(lanes.at<AnyWmmaOperands>(lane), i, row * columns + column);
            }
        }
    };
    using Own = const AnyWmmaOperands&;
    all(matrix_a(), T(), M * K, K,
        [&](Own own, unsigned i, unsigned e) { a[e] = number<T>(static_cast<const Element*>(own.a)[i]); });
    all(matrix_b(), T(), K * N, N,
        [&](Own own, unsigned i, unsigned e) { b[e] = number<T>(static_cast<const Element*>(own.b)[i]); });
    all(accumulator(), C(), M * N, N,
        [&](Own own, unsigned i, unsigned e) { d[e] = number<C>(static_cast<const C*>(own.c)[i]); });
    for (int row = 0; row < M; ++row) {
        for (int k = 0; k < K; ++k) {
            for (int column = 0; column < N; ++column)
                d[row * N + column] += a[row * K + k] * b[k * N + column];
        }
    }
    all(accumulator(), D(), M * N, N, [&](Own own, unsigned i, unsigned e) {
        static_cast<D*>(own.d)[i] = rounded<D>(d[e], first.saturate);
    });
}

template <class T>
concept HasFormat = requires {
    typename T::Format;
};

}  // namespace detail

template <int M, int N, int K, class T, class LayoutA, class LayoutB, class C, class D>
void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
              const fragment<matrix_b, M, N, K, T, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c,
              bool saturate = false, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    if constexpr (M == 16 && N == 16 && detail::HasFormat<T> && std::is_same_v<C, float> &&
                  std::is_same_v<D, float>) {
        cuda_on_cpu::multiply_fragments({d.x, a.x, b.x, c.x, cuda_on_cpu::decode<typename T::Format>, site});
    } else {
        cuda_on_cpu::AnyWmmaOperands own{d.x, a.x, b.x, c.x, saturate, site};
        cuda_on_cpu::warp_collective(0xffffffffu, &own, detail::multiply<M, N, K, T, C, D>, "mma_sync", site);
    }
}

}  // namespace nvcuda::wmma

#include "cuda_on_cpu/macros_back.h"
