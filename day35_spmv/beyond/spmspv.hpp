// y = A x for a sparse matrix A and a sparse vector x of floats. The host API; the kernels are in
// sparse_vector.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "host/csr_matrix.hpp"

namespace day35 {

struct SparseXView;
struct SparseYView;

// x on the device: entry i is values[i], at cols[i]. Columns are from 0 to the matrix's last, which
// is not checked; they may come in any order. If one comes twice, the values add up.
struct SparseX {
    course::DeviceSpan<const Index> cols;
    course::DeviceSpan<const float> values;
};

// A sparse y on the device: count[0] rows, ascending, with their values. A row is in it if an entry
// of A meets an entry of x there, even if the sum is 0. `rows` and `values` have a place for each
// row of A, and `count` has one element.
struct SparseY {
    course::DeviceSpan<Index> rows;
    course::DeviceSpan<float> values;
    course::DeviceSpan<Index> count;
};

// A matrix on the device, ready for one version's products. Products with the same one must not run
// at the same time: it holds their work space.
class SparseProduct {
  public:
    // Queues the product; `out` has values alone if y is dense.
    using Launch = std::function<void(const SparseXView& x, const SparseYView& out, cudaStream_t stream)>;

    SparseProduct(Shape shape, bool has_sparse_y, Launch launch)
        : shape_(shape), has_sparse_y_(has_sparse_y), launch_(std::move(launch)) {}

    Shape shape() const { return shape_; }
    bool has_sparse_y() const { return has_sparse_y_; }

    // Queues y = A x. The first is for versions with a dense y, which has shape().rows floats, the
    // second for those with a sparse one. Both throw std::invalid_argument for the other versions,
    // wrong lengths, and outputs that overlap x; CudaError if a launch fails.
    void multiply(const SparseX& x, course::DeviceSpan<float> y, cudaStream_t stream = nullptr) const;
    void multiply(const SparseX& x, const SparseY& y, cudaStream_t stream = nullptr) const;

  private:
    SparseXView checked(const SparseX& x) const;

    Shape shape_;
    bool has_sparse_y_;
    Launch launch_;
};

// Brings `csr` onto the device, in the version's format.
using SparseMaker = std::unique_ptr<SparseProduct> (*)(const CsrMatrix& csr);

// The least that a product must do: entries of x, and of A in the columns of x, and rows of y that
// are written.
struct SparseWork {
    Offset x_entries = 0;
    Offset met_entries = 0;
    Offset met_rows = 0;  // with at least one of these entries
    Index rows = 0;
};

// The versions, in the order of the lesson.
using Spmspv = course::Version<SparseMaker, SparseWork>;
std::span<const Spmspv> sparse_vector_versions();

// --- On the CPU ----------------------------------------------------------------------------------

struct SparseVector {
    std::vector<Index> cols;
    std::vector<float> values;
};

// The reference, in double. With n_r entries of A in row r that meet an entry of x, float is off by
// at most (n_r + 1) / 2 times epsilon times sum |a x|: n_r - 1 additions, a product, and the sum of
// an x that comes twice. This bound is `magnitude`, for a Bound with factor 1; but 0 where float
// must be exact, as all products are whole numbers, and sum |a x| is at most 2^24.
struct SparseReference {
    std::vector<double> y;  // of all rows
    std::vector<double> magnitude;
    std::vector<Index> met_rows;  // ascending
    SparseWork work;
};
SparseReference multiply_on_cpu(const CsrMatrix& csr, const SparseVector& x);

}  // namespace day35
