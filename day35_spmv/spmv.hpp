// y = A x for a sparse matrix A of floats. The host API of day 35; no kernels here, they are in the
// spmv_*.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "host/csr_matrix.hpp"
#include "host/row_statistics.hpp"

namespace day35 {

// A matrix on the device in one version's format, ready to be multiplied. It has one owner, the
// unique_ptr that it comes in. Work space, where a version needs some, belongs to it: two products
// with the same operator must not run at the same time.
class Operator {
  public:
    virtual ~Operator() = default;
    Operator(const Operator&) = delete;
    Operator& operator=(const Operator&) = delete;

    // Queues y = A x on `stream`. x: shape().cols floats, y: shape().rows, both with any alignment
    // of a float. Throws std::invalid_argument for other lengths or a y that overlaps x, CudaError
    // when a launch fails. An x that is NaN or Inf changes only the rows with an entry in that
    // column.
    void multiply(course::DeviceSpan<const float> x, course::DeviceSpan<float> y,
                  cudaStream_t stream = nullptr) const;

    Shape shape() const { return shape_; }
    // Of the matrix as it is stored, and without the places that only fill up: what a product must
    // read at least.
    std::size_t stored_bytes() const { return stored_bytes_; }
    std::size_t least_bytes() const { return least_bytes_; }
    // What was chosen, in words, where there was a choice: "packed_sell, sigma 1".
    const std::string& choice() const { return choice_; }

  protected:
    Operator(Shape shape, std::size_t stored_bytes, std::size_t least_bytes, std::string choice = "")
        : shape_(shape), stored_bytes_(stored_bytes), least_bytes_(least_bytes), choice_(std::move(choice)) {}

  private:
    // x and y are right, and there is at least one row.
    virtual void launch(const float* x, float* y, cudaStream_t stream) const = 0;

    Shape shape_;
    std::size_t stored_bytes_;
    std::size_t least_bytes_;
    std::string choice_;
};

// The one rule for wide offsets: on the host, places among the entries are always 64 bits. On the
// device CSR's are 32 bits as long as these count all entries (up to about 2^31), since they are a
// good part of what is read where rows are short; other formats have one offset for many rows, and
// it has 64 bits. kWide: 64 bits in any case, for tests.
enum class OffsetRule { kAsNeeded, kWide };

// Brings `csr` into the version's format and onto the device. Throws std::bad_alloc or CudaError
// where there is no room.
using Maker = std::unique_ptr<Operator> (*)(const CsrMatrix& csr, OffsetRule rule);

// The versions, in the order of the lesson. A constraint says of which matrices a version would
// store mostly filling.
using Spmv = course::Version<Maker, RowStatistics>;
std::span<const Spmv> versions();

// --- On the CPU ----------------------------------------------------------------------------------

// The reference, in double: y, and for each row the magnitude that course::verify holds its error
// against, Bound::terms being 1. It is 0 where float must be exact in any order: all products are
// whole numbers, and sum |a x| is at most 2^24. Else it is sum |a x| times the square root of the
// number of entries (Growth::kSquareRoot). x has shape().cols elements.
struct Reference {
    std::vector<double> y;
    std::vector<double> magnitude;
};
Reference multiply_on_cpu(const CsrMatrix& csr, std::span<const float> x);

// As one writes it on a CPU, to compare times with: rows on all cores, in float.
void multiply_in_float(const CsrMatrix& csr, std::span<const float> x, std::span<float> y);

}  // namespace day35
