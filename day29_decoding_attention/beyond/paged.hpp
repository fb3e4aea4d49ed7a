// Day 29, beyond: a paged cache. The memory of all sequences is one pool of pages of 16 tokens, and
// each sequence has a row of a block table: the numbers of its pages, in order. A sequence takes a
// page when it needs one, so no memory is reserved for tokens that never come, and sequences that
// start with the same prompt can share its pages.
//
// Method: W. Kwon and others, "Efficient Memory Management for Large Language Model Serving with
// PagedAttention", 2023.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "decoding_attention.hpp"

namespace day29 {

inline constexpr std::size_t kPage = 16;            // tokens of a page
inline constexpr std::size_t kMostPagedHeads = 64;  // that share a head of K and V

struct PagedShape {
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t heads_kv = 1;
    std::size_t pages = 0;        // of the pool
    std::size_t table_pages = 0;  // entries of a row of the block table
    std::size_t dim = 128;        // head dimension: 64 or 128

    std::size_t group() const { return heads / heads_kv; }
    std::size_t capacity() const { return table_pages * kPage; }
    std::size_t q_elements() const { return batch * heads * dim; }
    std::size_t pool_elements() const { return pages * heads_kv * kPage * dim; }
};

// "16x32:8x8192x128 in 4096 pages": batch x heads:heads_kv x tokens of a row of the table x dim.
std::string name(const PagedShape& shape);

// One query for each sequence and head. All arrays are packed, in the order of the extents. The
// tokens of a page of one head are adjacent.
struct PagedDecoding {
    using T = __nv_bfloat16;

    PagedShape shape;
    course::DeviceSpan<const T> q;  // [batch, heads, dim]
    course::DeviceSpan<const T> k;  // [pages, heads_kv, kPage, dim]
    course::DeviceSpan<const T> v;  // as k
    // [batch, table_pages]: token t of a sequence is token t % kPage of page table[t / kPage]. The
    // entries of existing tokens must be from 0 to pages - 1; no other entry is used.
    course::DeviceSpan<const int> table;
    // [batch]: tokens of a sequence. A length outside of 0 to table_pages kPage is clamped to that
    // range.
    course::DeviceSpan<const int> lengths;
    course::DeviceSpan<T> out;  // as q
    float scale = 1;            // usually 1 / sqrt(dim)
};

// Device memory for the parts of rows; `blocks` as in Workspace. Throws std::invalid_argument for a
// shape that launchers refuse; CudaError.
class PagedWorkspace {
  public:
    explicit PagedWorkspace(const PagedShape& shape, unsigned blocks = 0);

    const PagedShape& shape() const { return shape_; }
    unsigned blocks() const { return blocks_; }
    float* parts() { return parts_.data(); }

  private:
    PagedShape shape_;
    unsigned blocks_;
    course::DeviceBuffer<float> parts_;
};

// Queues the work on `stream`. Throws std::invalid_argument for extents that do not fit together; a
// dim other than 64 and 128; more than kMostPagedHeads heads for a head of K; arrays that are not
// 16-byte aligned; a scale that is not a finite number above 0; an out that overlaps an input; and
// a workspace for another shape. Throws CudaError if a launch fails.
using PagedLauncher = void (*)(const PagedDecoding& decoding, PagedWorkspace& workspace, cudaStream_t stream);

// A shape and the number of tokens in all sequences together, which determine the bytes.
struct PagedLoad {
    PagedShape shape;
    std::size_t tokens = 0;
};

// The versions, slow to fast.
using PagedVersion = course::Version<PagedLauncher, PagedLoad>;
std::span<const PagedVersion> paged_versions();

// The roundings of a version that differ, for reference_row().
Precision paged_precision(const PagedVersion& version);

}  // namespace day29
