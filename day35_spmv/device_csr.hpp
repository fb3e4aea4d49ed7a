// A CSR matrix on the device, and the CSR versions made from it: for a matrix that does not have to
// be on the host.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "spmv.hpp"

namespace day35 {

// Entries are loaded in packs of so many: their arrays have a whole number of packs.
inline constexpr int kPackedElements = 4;

inline std::size_t padded_to_packs(Offset entries) {
    return course::ceil_div<std::size_t>(entries, kPackedElements) * kPackedElements;
}

// O: the type of the offsets, std::int32_t or Offset (64 bits).
template <class O>
struct DeviceCsr {
    // Takes over `cols` and `values`, whose length is a whole number of packs; their contents are
    // not checked. Throws std::invalid_argument for arrays of other lengths, and if O cannot hold
    // the number of entries.
    DeviceCsr(Shape a_shape, std::span<const Offset> starts, course::DeviceBuffer<Index> a_cols,
              course::DeviceBuffer<float> a_values)
        : shape(a_shape),
          entries(checked_entries(shape, starts, a_cols.size(), a_values.size())),
          row_start(std::span<const O>(std::vector<O>(starts.begin(), starts.end()))),
          cols(std::move(a_cols)),
          values(std::move(a_values)) {}

    Shape shape;
    Offset entries;
    course::DeviceBuffer<O> row_start;
    course::DeviceBuffer<Index> cols;
    course::DeviceBuffer<float> values;

  private:
    static Offset checked_entries(Shape shape, std::span<const Offset> starts, std::size_t cols,
                                  std::size_t values) {
        const auto expect = [](const char* what, std::size_t size, std::size_t expected) {
            course::require(size == expected, "DeviceCsr: ", what, " has ", size, " elements; expected ",
                            expected);
        };
        expect("row_start", starts.size(), static_cast<std::size_t>(shape.rows) + 1);
        constexpr O kMost = std::numeric_limits<O>::max();
        const Offset entries = starts.back();
        course::require(entries >= 0 && entries <= kMost, "DeviceCsr: row_start ends with ", entries,
                        "; expected 0 to ", kMost);
        expect("cols", cols, padded_to_packs(entries));
        expect("values", values, padded_to_packs(entries));
        return entries;
    }
};

// `row_start` is read during the call. O: std::int32_t or Offset.
template <class O>
std::unique_ptr<Operator> csr_scalar(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_vector(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_vectorised(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_adaptive(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_merge(DeviceCsr<O> matrix, std::span<const Offset> row_start);

}  // namespace day35
