// Host API of day 29: attention for decoding. Each sequence has one new token, or a few, and a
// cache of the keys and values of all previous tokens.
//
//     out[b, h, i] = sum_j p[j] v[b, g, j]    p = softmax over j of scale (q[b, h, i] . k[b, g, j])
//
// with g = h / (heads / heads_kv): adjacent heads of Q share one head of K and V (grouped-query
// attention, GQA; heads_kv = 1: multi-query attention, MQA; heads_kv = heads: ordinary attention).
//
// The queries of a sequence are its newest tokens, and their keys are in the cache already: query i
// of n sees the first length - (n - 1 - i) tokens. A query that sees no token becomes zeros.
//
// NaN and Inf: the content of the cache after a sequence's length has no effect. A NaN in Q or K
// makes the rows that see it NaN, and so does a score that overflows. A NaN or Inf in V makes its
// column NaN or Inf in all queries that share the head of V.
//
// Methods: T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding", 2023; R. Sanovar et al., "Lean
// Attention", 2024; N. Shazeer, "Fast transformer decoding", 2019; J. Ainslie et al., "GQA", 2023.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day29 {

// Queries that share a head of K and V: (heads / heads_kv) queries, at most.
inline constexpr std::size_t kMostRows = 16;

struct Shape {
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t heads_kv = 1;
    std::size_t queries = 1;   // of each sequence and head
    std::size_t capacity = 0;  // tokens for which a sequence has memory
    std::size_t dim = 128;     // head dimension: 64 or 128

    // Rows of Q that share a head of K and V. They are adjacent in memory.
    std::size_t rows() const { return heads / heads_kv * queries; }
    std::size_t q_elements() const { return batch * heads * queries * dim; }
    std::size_t cache_elements() const { return batch * heads_kv * capacity * dim; }
};

// "16x32:8x8192x128": batch x heads:heads_kv x capacity x dim; with more than one query " 2
// queries".
std::string name(const Shape& shape);

// T: __half, __nv_bfloat16. All arrays are packed, in the order of the extents.
template <class T>
struct Decoding {
    Shape shape;
    course::DeviceSpan<const T> q;  // [batch, heads, queries, dim]
    course::DeviceSpan<const T> k;  // [batch, heads_kv, capacity, dim]
    course::DeviceSpan<const T> v;  // as k
    // [batch]: tokens in the cache. Read by the kernels, so that a captured graph can be replayed
    // while the cache grows. A length outside of 0 to capacity is clamped to that range.
    course::DeviceSpan<const int> lengths;
    course::DeviceSpan<T> out;  // as q
    float scale = 1;            // usually 1 / sqrt(dim)
};

// Device memory for the results of parts of a sequence. Two launches that may run at the same time,
// on two streams, need two workspaces.
class Workspace {
  public:
    // For problems of exactly this shape, on the current device. `blocks`: how many run at the same
    // time, for which the versions divide their work; 0: as many as the GPU can hold. Throws
    // std::invalid_argument for a shape that launchers refuse; CudaError.
    explicit Workspace(const Shape& shape, unsigned blocks = 0);

    const Shape& shape() const { return shape_; }
    unsigned blocks() const { return blocks_; }
    float* parts() { return parts_.data(); }
    std::size_t part_rows() const { return part_rows_; }

  private:
    Shape shape_;
    unsigned blocks_;
    std::size_t part_rows_;
    course::DeviceBuffer<float> parts_;
};

// Queues the work on `stream`. Throws std::invalid_argument for extents that do not fit together; a
// dim other than 64 and 128; more than kMostRows rows on a head of K; arrays that are not 16-byte
// aligned; a scale that is not a finite number above 0; an out that overlaps an input; a workspace
// for another shape; and a problem that the version cannot run. Throws CudaError if a launch fails.
template <class T>
using Launcher = void (*)(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream);

// A shape and the number of tokens in all sequences together, which determine the bytes.
struct Load {
    Shape shape;
    std::size_t tokens = 0;
};

// The versions, slow to fast.
template <class T>
using Version = course::Version<Launcher<T>, Load>;
template <class T>
std::span<const Version<T>> versions();

// The fastest one that the GPU allows.
template <class T>
void attend(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream);

// The checks of every launcher, which throw as described above. Returns false if there is nothing
// to write.
template <class T>
bool check_arguments(const Decoding<T>& decoding, const Workspace& workspace);

// --- Reference -----------------------------------------------------------------------------------

// The roundings of a version that differ.
struct Precision {
    double weight = 0;  // of p, as an operand of the second product
    double smallest_weight = 0;
    bool tensor_cores = false;  // sums are cut off, not rounded
};
template <class T>
Precision precision(const Version<T>& version);

struct ReferenceRow {
    std::vector<double> value;  // dim of them
    std::vector<double> bound;  // of |got - value|
};

// One row of the result in double: q has dim elements, k and v have `visible` rows of dim.
template <class T>
ReferenceRow reference_row(std::span<const T> q, std::span<const T> k, std::span<const T> v,
                           std::size_t visible, double scale, const Precision& precision);

}  // namespace day29
