// Matrices of a warp (nvcuda::wmma): __half and __nv_bfloat16 with sums in float (__half also with
// sums in __half), bytes with sums in int, tf32 with sums in float, double. The mapping of elements
// to lanes is unspecified, here and on a GPU: here lane l holds the elements l, l + 32, l + 64...
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

// A lane's part of D = A B + C: 8 elements of each matrix, all in row-major order.
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
    static constexpr int num_elements = kRows * kColumns / 32;
    static constexpr int num_storage_elements = num_elements;

    element_type x[num_elements];
};

namespace detail {

// Calls visit(element, its offset in memory).
template <class Fragment, class Visit>
void visit_elements(bool row_major, unsigned leading_dimension, Visit visit) {
    for (unsigned i = 0; i < Fragment::num_elements; ++i) {
        const unsigned element = i * 32 + cuda_on_cpu::current_lane;
        const unsigned row = element / Fragment::kColumns, column = element % Fragment::kColumns;
        visit(i, row_major ? row * leading_dimension + column : column * leading_dimension + row);
    }
}

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const typename detail::Stored<T>::Type* from,
                      unsigned leading_dimension, cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    using Fragment = fragment<Use, M, N, K, T, Layout>;
    cuda_on_cpu::check_fragment_access(from, leading_dimension, sizeof *from, "load_matrix_sync", site);
    detail::visit_elements<Fragment>(std::is_same_v<Layout, row_major>, leading_dimension,
                                     [&](unsigned i, unsigned place) { f.x[i] = from[place]; });
}
template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const std::type_identity_t<T>* from,
                      unsigned leading_dimension, layout_t layout,
                      cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(from, leading_dimension, sizeof *from, "load_matrix_sync", site);
    detail::visit_elements<fragment<accumulator, M, N, K, T>>(
        layout == mem_row_major, leading_dimension,
        [&](unsigned i, unsigned place) { f.x[i] = from[place]; });
}
template <int M, int N, int K, class T>
void store_matrix_sync(std::type_identity_t<T>* to, const fragment<accumulator, M, N, K, T>& f,
                       unsigned leading_dimension, layout_t layout,
                       cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(to, leading_dimension, sizeof *to, "store_matrix_sync", site);
    detail::visit_elements<fragment<accumulator, M, N, K, T>>(
        layout == mem_row_major, leading_dimension, [&](unsigned i, unsigned place) { to[place] = f.x[i]; });
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
    for (unsigned e = 0; e < M * K; ++e)
        a[e] = number<T>(static_cast<const Element*>(lanes.at<AnyWmmaOperands>(e % 32).a)[e / 32]);
    for (unsigned e = 0; e < K * N; ++e)
        b[e] = number<T>(static_cast<const Element*>(lanes.at<AnyWmmaOperands>(e % 32).b)[e / 32]);
    for (unsigned e = 0; e < M * N; ++e)
        d[e] = number<C>(static_cast<const C*>(lanes.at<AnyWmmaOperands>(e % 32).c)[e / 32]);
    for (int row = 0; row < M; ++row) {
        for (int k = 0; k < K; ++k) {
            for (int column = 0; column < N; ++column)
                d[row * N + column] += a[row * K + k] * b[k * N + column];
        }
    }
    for (unsigned e = 0; e < M * N; ++e)
        static_cast<D*>(lanes.at<AnyWmmaOperands>(e % 32).d)[e / 32] = rounded<D>(d[e], first.saturate);
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
