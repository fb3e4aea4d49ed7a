// The matrices of sparse_formats.hpp on the device. Each owns its memory alone; kernels get its
// view().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/device/device_buffer.hpp"
#include "device_csr.hpp"
#include "host/sparse_formats.hpp"

namespace day35 {

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
