// A CSR matrix on the device. It owns its memory alone: it can be moved, not copied. Kernels get
// its view(): plain pointers and numbers, which own nothing and are copied with every launch.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "host/csr_matrix.hpp"

namespace day35 {

// O: the type of the offsets, std::int32_t or Offset (64 bits).
template <class O>
struct CsrView {
    Index rows;
    const O* row_start;
    const Index* cols;
    const float* values;
};

// Elements of an array that is read in packs: a whole number of them.
inline constexpr int kPackedElements = 4;

// A copy of `host` on the device, followed by zeros up to a whole number of packs.
template <class T>
course::DeviceBuffer<T> upload_for_packs(std::span<const T> host) {
    const std::size_t size = course::ceil_div<std::size_t>(host.size(), kPackedElements) * kPackedElements;
    course::DeviceBuffer<T> device(size);
    if (size == 0) return device;
    CUDA_CHECK(cudaMemset(device.data() + size - kPackedElements, 0, kPackedElements * sizeof(T)));
    course::copy_host_to_device(device.data(), host.size(), host.data(), host.size(), sizeof(T), nullptr);
    return device;
}

template <class O>
class DeviceCsr {
  public:
    // Both throw std::invalid_argument where O cannot hold the number of entries.
    explicit DeviceCsr(const CsrMatrix& csr)
        : DeviceCsr(csr.shape(), csr.row_start(), upload_for_packs(csr.cols()),
                    upload_for_packs(csr.values())) {}

    // From entries that are on the device already; their arrays have a whole number of packs.
    // Throws std::invalid_argument for arrays of other lengths; their contents are not checked.
    DeviceCsr(Shape shape, std::span<const Offset> row_start, course::DeviceBuffer<Index> cols,
              course::DeviceBuffer<float> values)
        : shape_(shape),
          entries_(checked_entries(shape, row_start, cols.size(), values.size())),
          row_start_(std::span<const O>(std::vector<O>(row_start.begin(), row_start.end()))),
          cols_(std::move(cols)),
          values_(std::move(values)) {}

    Shape shape() const { return shape_; }
    Offset entries() const { return entries_; }
    CsrView<O> view() const { return {shape_.rows, row_start_.data(), cols_.data(), values_.data()}; }
    std::size_t bytes() const {
        return row_start_.bytes() + static_cast<std::size_t>(entries_) * (sizeof(Index) + sizeof(float));
    }

  private:
    static Offset checked_entries(Shape shape, std::span<const Offset> row_start, std::size_t cols,
                                  std::size_t values) {
        const auto expect = [](const char* what, std::size_t size, std::size_t expected) {
            course::require(size == expected, "DeviceCsr: ", what, " has ", size, " elements; expected ",
                            expected);
        };
        expect("row_start", row_start.size(), static_cast<std::size_t>(shape.rows) + 1);
        const Offset entries = row_start.back();
        constexpr O kMost = std::numeric_limits<O>::max();
        course::require(entries >= 0 && entries <= kMost, "DeviceCsr: row_start ends with ", entries,
                        "; expected 0 to ", kMost);
        const std::size_t padded = course::ceil_div<std::size_t>(entries, kPackedElements) * kPackedElements;
        expect("cols", cols, padded);
        expect("values", values, padded);
        return entries;
    }

    Shape shape_;
    Offset entries_;
    course::DeviceBuffer<O> row_start_;
    course::DeviceBuffer<Index> cols_;
    course::DeviceBuffer<float> values_;
};

}  // namespace day35
