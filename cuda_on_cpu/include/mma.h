// Matrices of a warp (nvcuda::wmma), 16 x 16 x 16, of __half or __nv_bfloat16 with sums in float. Which lane holds what is the
// implementation's own business, here and on a GPU: here lane l holds the elements l, l + 32, l + 64...
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/thread.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace cuda_on_cpu {

// A lane's part of D = A B + C; all of them row by row, 8 elements of each matrix.
struct WmmaOperands {
    float* d;
    const void* a;
    const void* b;
    const float* c;
    Decode decode;
    Site site;
};
void multiply_fragments(WmmaOperands own);
// All lanes of the warp are here, with the same pointer and leading dimension (in elements of `element_size` bytes), as aligned as
// they must be: the pointer to 32 bytes, the leading dimension to 16.
void check_fragment_access(const void* pointer, unsigned leading_dimension, std::size_t element_size,
                           const char* name, Site site);

}  // namespace cuda_on_cpu

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
    static_assert(M == 16 && N == 16 && K == 16, "modelled are fragments of 16 x 16 x 16");

  public:
    static constexpr int num_elements = 8;
    T x[num_elements];
};

namespace detail {

// Calls visit(element, its place in memory).
template <class Visit>
void visit_elements(bool row_major, unsigned leading_dimension, Visit visit) {
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned element = i * 32 + cuda_on_cpu::current_lane;
        const unsigned row = element / 16, column = element % 16;
        visit(i, row_major ? row * leading_dimension + column : column * leading_dimension + row);
    }
}

}  // namespace detail

template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& f, const T* from, unsigned leading_dimension,
                      cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(from, leading_dimension, sizeof(T), "load_matrix_sync", site);
    detail::visit_elements(std::is_same_v<Layout, row_major>, leading_dimension,
                           [&](unsigned i, unsigned place) { f.x[i] = from[place]; });
}
inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float>& f, const float* from,
                             unsigned leading_dimension, layout_t layout,
                             cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(from, leading_dimension, sizeof(float), "load_matrix_sync", site);
    detail::visit_elements(layout == mem_row_major, leading_dimension,
                           [&](unsigned i, unsigned place) { f.x[i] = from[place]; });
}
inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& f,
                              unsigned leading_dimension, layout_t layout,
                              cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::check_fragment_access(to, leading_dimension, sizeof(float), "store_matrix_sync", site);
    detail::visit_elements(layout == mem_row_major, leading_dimension,
                           [&](unsigned i, unsigned place) { to[place] = f.x[i]; });
}

template <class Use, class T, class Layout>
void fill_fragment(fragment<Use, 16, 16, 16, T, Layout>& f, const T& value) {
    for (T& element : f.x)
        element = value;
}

template <class T, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
              const fragment<matrix_a, 16, 16, 16, T, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, T, LayoutB>& b,
              const fragment<accumulator, 16, 16, 16, float>& c,
              cuda_on_cpu::Site site = cuda_on_cpu::Site::here()) {
    cuda_on_cpu::multiply_fragments({d.x, a.x, b.x, c.x, cuda_on_cpu::decode<typename T::Format>, site});
}

}  // namespace nvcuda::wmma
