// y = A x for a sparse matrix A of floats. The host API of day 35; the kernels are in spmv.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "host/csr_matrix.hpp"
#include "host/formats.hpp"

namespace day35 {

// A matrix on the device in one version's format, ready to be multiplied. It has one owner, the
// unique_ptr that it comes in. Work space, where a version needs some, belongs to it: two products
// with the same operator must not run at the same time.
class Operator {
  public:
    explicit Operator(Shape shape) : shape_(shape) {}
    Operator(const Operator&) = delete;
    Operator& operator=(const Operator&) = delete;

    // Queues y = A x on `stream`. x: shape().cols floats, y: shape().rows, both with any alignment
    // of a float. Throws std::invalid_argument for other lengths or a y that overlaps x, CudaError
    // when a launch fails. An x that is NaN or Inf changes only the rows with an entry in that
    // column. Products of one operator must not run at the same time: it holds their partial sums.
    void multiply(course::DeviceSpan<const float> x, course::DeviceSpan<float> y,
                  cudaStream_t stream = nullptr) const;

    Shape shape() const { return shape_; }
    // Bytes of the matrix as it is stored, and without padding, which a product must read at least.
    std::size_t stored_bytes() const { return stored_bytes_; }
    std::size_t least_bytes() const { return stored_bytes_ - filling_bytes_; }
    // The choice that a version has made, in words: "packed_sell, sigma 1".
    const std::string& choice() const { return choice_; }

    // --- For the makers in spmv.cu

    // Copies an array of the matrix to the device, for as long as the operator exists. Null if it
    // is empty.
    template <class T>
    const T* upload(const std::vector<T>& host) {
        stored_bytes_ += host.size() * sizeof(T);
        return keep(course::DeviceBuffer<T>(std::span<const T>(host)));
    }
    // Takes over an array whose bytes do not count as the matrix's.
    template <class T>
    T* keep(course::DeviceBuffer<T> buffer) {
        const auto kept = std::make_shared<course::DeviceBuffer<T>>(std::move(buffer));
        arrays_.push_back(kept);
        return kept->data();
    }
    void add_stored_bytes(std::size_t bytes) { stored_bytes_ += bytes; }
    void set_filling_bytes(std::size_t bytes) { filling_bytes_ = bytes; }
    void set_choice(const std::string& choice) { choice_ = choice; }

    // Queues the product. x and y are right, and there is at least one row.
    std::function<void(const float* x, float* y, cudaStream_t stream)> launch;

  private:
    Shape shape_;
    std::size_t stored_bytes_ = 0;
    std::size_t filling_bytes_ = 0;
    std::string choice_;
    std::vector<std::shared_ptr<void>> arrays_;
};

// The type of row_start on the device. If rows are short, offsets are a good part of CSR's loads,
// so they have 32 bits as long as these can count all entries. (On the host, and in formats that
// have one offset for many rows, offsets have 64 bits.) kWide: 64 bits in any case, for tests.
enum class OffsetRule { kAsNeeded, kWide };

// Brings `csr` into the version's format and onto the device. Throws std::bad_alloc or CudaError
// where there is no room.
using Maker = std::unique_ptr<Operator> (*)(const CsrMatrix& csr, OffsetRule rule);

// The versions, in the order of the lesson. A constraint excludes the matrices of which a version
// would store mostly padding.
using Spmv = course::Version<Maker, RowStatistics>;
std::span<const Spmv> versions();

// The version that `auto` chooses for such rows.
struct AutoChoice {
    const char* version;  // packed_sell, csr_vectorised, csr_adaptive or coo_segmented
    Index sigma = 1;      // of packed_sell
};
AutoChoice choose(const RowStatistics& rows);

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

}  // namespace day35
