// The matrices of sparse_matrix.hpp on the device. Each owns its memory alone: it can be moved, not copied. Kernels get
// plain pointers and numbers, the view() of a matrix, which own nothing and are copied with every launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "sparse_matrix.hpp"

namespace day35 {

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

template <class T>
course::DeviceBuffer<T> upload(std::span<const T> host) {
    return course::DeviceBuffer<T>(host);
}

struct CooView {
    Offset entries;
    const Index* rows;
    const Index* cols;
    const float* values;
};

class DeviceCoo {
  public:
    explicit DeviceCoo(const CooMatrix& coo)
        : rows_(upload(coo.rows())), cols_(upload(coo.cols())), values_(upload(coo.values())) {}

    CooView view() const {
        return {static_cast<Offset>(rows_.size()), rows_.data(), cols_.data(), values_.data()};
    }
    std::size_t bytes() const { return rows_.bytes() + cols_.bytes() + values_.bytes(); }

  private:
    course::DeviceBuffer<Index> rows_;
    course::DeviceBuffer<Index> cols_;
    course::DeviceBuffer<float> values_;
};

// O: the offsets' type on the device, std::int32_t or Offset.
template <class O>
struct CsrView {
    Index rows;
    const O* row_start;
    const Index* cols;
    const float* values;
};

template <class O>
class DeviceCsr {
  public:
    // Both throw std::invalid_argument where O cannot hold the number of entries.
    explicit DeviceCsr(const CsrMatrix& csr)
        : DeviceCsr(csr.shape(), csr.row_start(), upload_for_packs(csr.cols()),
                    upload_for_packs(csr.values())) {}

    // From entries that are on the device already; their arrays have a whole number of packs. Throws std::invalid_argument
    // for arrays of other lengths; what they hold is not looked at.
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

struct EllView {
    Index rows;
    Index width;
    const Index* cols;
    const float* values;
};

class DeviceEll {
  public:
    explicit DeviceEll(const EllMatrix& ell)
        : rows_(ell.shape().rows),
          width_(ell.width()),
          cols_(upload(ell.cols())),
          values_(upload(ell.values())) {}

    EllView view() const { return {rows_, width_, cols_.data(), values_.data()}; }
    std::size_t bytes() const { return cols_.bytes() + values_.bytes(); }

  private:
    Index rows_;
    Index width_;
    course::DeviceBuffer<Index> cols_;
    course::DeviceBuffer<float> values_;
};

struct JdsView {
    Index rows;
    Index diagonals;
    const Index* order;
    const Offset* diagonal_start;
    const Index* cols;
    const float* values;
};

class DeviceJds {
  public:
    explicit DeviceJds(const JdsMatrix& jds)
        : order_(upload(jds.order())),
          diagonal_start_(upload(jds.diagonal_start())),
          cols_(upload(jds.cols())),
          values_(upload(jds.values())) {}

    JdsView view() const {
        return {static_cast<Index>(order_.size()),
                static_cast<Index>(diagonal_start_.size() - 1),
                order_.data(),
                diagonal_start_.data(),
                cols_.data(),
                values_.data()};
    }
    std::size_t bytes() const {
        return order_.bytes() + diagonal_start_.bytes() + cols_.bytes() + values_.bytes();
    }

  private:
    course::DeviceBuffer<Index> order_;
    course::DeviceBuffer<Offset> diagonal_start_;
    course::DeviceBuffer<Index> cols_;
    course::DeviceBuffer<float> values_;
};

// `order` is null where the rows are in their own order.
struct SellView {
    Index rows;
    const Index* order;
    const Offset* slice_start;
    const Index* cols;
    const float* values;
};

class DeviceSell {
  public:
    explicit DeviceSell(const SellMatrix& sell)
        : rows_(sell.shape().rows),
          order_(upload(sell.order())),
          slice_start_(upload(sell.slice_start())),
          cols_(upload(sell.cols())),
          values_(upload(sell.values())) {}

    SellView view() const {
        return {rows_, order_.data(), slice_start_.data(), cols_.data(), values_.data()};
    }
    std::size_t bytes() const {
        return order_.bytes() + slice_start_.bytes() + cols_.bytes() + values_.bytes();
    }

  private:
    Index rows_;
    course::DeviceBuffer<Index> order_;
    course::DeviceBuffer<Offset> slice_start_;
    course::DeviceBuffer<Index> cols_;
    course::DeviceBuffer<float> values_;
};

struct PackedSellView {
    Index rows;
    const Index* order;
    const PackedSlice* slices;
    const std::uint8_t* codes;
    const float* values;
};

class DevicePackedSell {
  public:
    explicit DevicePackedSell(const PackedSellMatrix& packed)
        : rows_(packed.shape().rows),
          order_(upload(packed.order())),
          slices_(upload(packed.slices())),
          codes_(upload(packed.codes())),
          values_(upload(packed.values())) {}

    PackedSellView view() const {
        return {rows_, order_.data(), slices_.data(), codes_.data(), values_.data()};
    }
    std::size_t bytes() const { return order_.bytes() + slices_.bytes() + codes_.bytes() + values_.bytes(); }

  private:
    Index rows_;
    course::DeviceBuffer<Index> order_;
    course::DeviceBuffer<PackedSlice> slices_;
    course::DeviceBuffer<std::uint8_t> codes_;
    course::DeviceBuffer<float> values_;
};

}  // namespace day35
