// Attention, softmax(scale Q K^T) V, for the days that compute it in one kernel: the problem, its
// versions, the checks of the arguments, and the reference.
//
//     out[b, h, i] = sum_j p[j] v[b, g, j]    p = softmax over j of scale (q[b, h, i] . k[b, g, j])
//
// with g = h / (heads / heads_kv): adjacent heads of Q share one head of K and V (grouped-query
// attention; heads_kv = heads is ordinary attention, heads_kv = 1 multi-query attention).
//
// Causal: row i sees the keys j <= i + length_k - length_q. The last row sees all keys, even if
// the lengths differ ("bottom-right" alignment), because the queries are the newest tokens of a
// longer sequence. A row that sees no key becomes zeros, and so does a row whose scores are all
// -Inf.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/bench/version.hpp"
#include "common/bench/work.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_view.hpp"
#include "common/device/pack.cuh"

namespace course::attention {

inline constexpr std::size_t kMaxDim = 128;

struct Extents {
    std::size_t batch = 0;
    std::size_t heads = 0;
    std::size_t length = 0;
    std::size_t dim = 0;
};

// The distance from one batch, head or row to the next, in elements. The elements of a row are
// contiguous.
struct Strides {
    std::size_t batch = 0;
    std::size_t head = 0;
    std::size_t row = 0;
};

// [batch, heads, length, dim] packed.
Strides packed(const Extents& extents);

// A view of [batch, heads, length, dim] elements in a span. They may be packed; they may have the
// columns of all heads side by side in a row, as a projection stores them (strides {length * heads
// * dim, dim, heads * dim}); or they may be part of one matrix that holds Q, K and V.
template <class T>
class HeadsView {
  public:
    HeadsView() = default;

    // Throws std::invalid_argument when the span is too short.
    HeadsView(DeviceSpan<T> span, const Extents& extents, const Strides& strides);
    HeadsView(DeviceSpan<T> span, const Extents& extents) : HeadsView(span, extents, packed(extents)) {}

    // Of memory that the caller knows to be large enough: nothing is checked.
    static HeadsView from_device_pointer(T* data, const Extents& extents, const Strides& strides) {
        HeadsView view;
        view.data_ = data;
        view.extents_ = extents;
        view.strides_ = strides;
        return view;
    }
    // Packed elements.
    static HeadsView from_device_pointer(T* data, const Extents& e) {
        return from_device_pointer(data, e, {e.heads * e.length * e.dim, e.length * e.dim, e.dim});
    }

    template <class Writable>
    requires(std::is_same_v<T, const Writable> && !std::is_const_v<Writable>)
        HeadsView(const HeadsView<Writable>& other)
        : data_(other.data()), extents_(other.extents()), strides_(other.strides()) {}

    // The first row of a head.
    __device__ T* head(std::size_t batch, std::size_t index) const {
        return data_ + batch * strides_.batch + index * strides_.head;
    }

    __host__ __device__ T* data() const { return data_; }
    __host__ __device__ const Extents& extents() const { return extents_; }
    __host__ __device__ const Strides& strides() const { return strides_; }
    __host__ __device__ int length() const { return static_cast<int>(extents_.length); }
    __host__ __device__ int dim() const { return static_cast<int>(extents_.dim); }

  private:
    T* data_ = nullptr;
    Extents extents_;
    Strides strides_;
};

// For the argument checks: the extents as text ("2x8x100x64"), whether a tensor is empty, whether
// each element has an address of its own, and the memory of a view from its first element to its
// last.
std::string text(const Extents& e);
bool same(const Extents& a, const Extents& b);
bool empty(const Extents& e);
bool elements_are_distinct(const Extents& extents, const Strides& strides);
template <class T>
DeviceSpan<T> memory_of(const HeadsView<T>& view);

// Are the rows of a view aligned, so that they can be read and written 16 bytes at a time?
template <class T>
bool rows_are_aligned(const HeadsView<T>& view) {
    const Strides strides = view.strides();
    constexpr std::size_t kPack = 16 / sizeof(T);
    return is_aligned(view.data(), 16) && strides.batch % kPack == 0 && strides.head % kPack == 0 &&
           strides.row % kPack == 0;
}

// T: float, __half, __nv_bfloat16.
template <class T>
struct Attention {
    HeadsView<const T> q;  // [batch, heads, length_q, dim]
    HeadsView<const T> k;  // [batch, heads_kv, length_k, dim]
    HeadsView<const T> v;  // as k
    HeadsView<T> out;      // as q
    float scale = 1;       // usually 1 / sqrt(dim)
    bool causal = false;
};

struct Shape {
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t heads_kv = 1;
    std::size_t length_q = 0;
    std::size_t length_k = 0;
    std::size_t dim = 0;
    bool causal = false;

    Extents q() const { return {batch, heads, length_q, dim}; }
    Extents kv() const { return {batch, heads_kv, length_k, dim}; }
};

// "4x8x2048x64". If the heads or lengths differ, the name has both: "2x8:1x100:300x64 causal"
// (heads:heads_kv, length_q:length_k).
std::string name(const Shape& shape);

// The number of keys that row `row` sees.
inline __host__ __device__ std::size_t visible_keys(std::size_t row, std::size_t length_q,
                                                    std::size_t length_k, bool causal) {
    if (!causal) return length_k;
    const std::size_t seen = row + 1 + length_k;
    return seen < length_q ? 0 : (seen - length_q < length_k ? seen - length_q : length_k);
}

// Queues the work on `stream`. The strides are arbitrary, and elements need only their natural
// alignment; rows that consist of whole, aligned 16-byte packs are faster. Extents may be 0. Throws
// std::invalid_argument for extents that do not fit together; dim > 128; a length of 2^30 or more;
// a scale that is not a finite number above 0; an `out` whose elements share addresses or whose
// memory (from the first element to the last) overlaps that of an input; and a problem that the
// version cannot run. Throws CudaError if a launch fails.
template <class T>
using Launcher = void (*)(const Attention<T>& attention, cudaStream_t stream);
template <class T>
using Version = course::Version<Launcher<T>, Shape>;

// The check that every launcher makes first; throws as described above. Returns false if there is
// nothing to write.
template <class T>
bool check_arguments(const Attention<T>& attention);

// Can rows be read and written 16 bytes at a time? In the last pack of a row, the elements from
// dim on are neither read nor written.
template <class T>
bool rows_are_aligned(const Attention<T>& attention) {
    return rows_are_aligned(attention.q) && rows_are_aligned(attention.k) && rows_are_aligned(attention.v) &&
           rows_are_aligned(attention.out);
}

// The minimum work: every tensor moved once, and the arithmetic for the visible scores.
template <class T>
Work work(const Shape& shape);
// --- Reference -----------------------------------------------------------------------------------

// Upper bounds of the relative error of each rounding in a version. The README of day 26 derives
// the bound of the result from them.
struct Precision {
    double sum = 0x1p-24;  // of an addition in either product
    // Tensor cores truncate a sum (towards 0, so these errors add up) after this many terms. 0:
    // sums are rounded to nearest.
    double between_cuts = 0;
    double product = 0x1p-24;    // of a product of two operands, including the loss from splitting them
    double weight = 0;           // of p as an operand of the second product
    double smallest_weight = 0;  // half the spacing of the smallest p
    double result = 0x1p-24;     // of out
    double smallest_result = 0x1p-150;
    // How errors along a sum grow: kLinear in the worst case, kSquareRoot where they are
    // independent (verify.hpp).
    Growth growth = Growth::kSquareRoot;
};

// The precision of matrix products with 16-bit operands on tensor cores, with weights rounded to
// T.
template <class T>
Precision tensor_core_precision();

struct ReferenceRow {
    std::vector<double> value;  // dim of them
    std::vector<double> bound;  // of |got - value|
};

// One row of the result in double. q has dim elements; k and v are those of one head, `visible`
// rows of dim elements each.
template <class T>
ReferenceRow reference_row(std::span<const T> q, std::span<const T> k, std::span<const T> v,
                           std::size_t visible, double scale, const Precision& precision);

}  // namespace course::attention
