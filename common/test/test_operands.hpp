// Operands for the tests of batched products: batches in every layout, in memory that reveals
// wrong accesses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "common/check/guarded_matrix.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/operands.hpp"

namespace course {

// The memory layout of the matrices of a batch.
struct BatchLayout {
    Op op = Op::kNone;
    std::size_t padding = 0;        // elements after each row
    std::size_t misaligned_by = 0;  // elements
    bool pointers = false;          // the last matrix first, each accessed through its pointer
};

// `count` matrices of rows x cols, whose op() is in `packed`, one after the other.
template <class T>
class TestBatch {
    using Element = std::remove_const_t<T>;

  public:
    TestBatch(std::span<const Element> packed, std::size_t count, std::size_t rows, std::size_t cols,
              const BatchLayout& layout)
        : layout_(layout),
          count_(count),
          rows_(layout.op == Op::kNone ? rows : cols),
          cols_(layout.op == Op::kNone ? cols : rows),
          memory_(as_stored(packed), count * rows_, cols_, layout.padding, layout.misaligned_by) {
        find();
    }

    // For outputs: filled with NaN.
    TestBatch(std::size_t count, std::size_t rows, std::size_t cols, const BatchLayout& layout)
        : layout_(layout),
          count_(count),
          rows_(rows),
          cols_(cols),
          memory_(count * rows, cols, layout.padding, layout.misaligned_by) {
        find();
    }

    Batch<T> view() {
        const DeviceMatrix<Element> all = memory_.view();
        const auto span = DeviceSpan<Element>::from_device_pointer(
            all.data(), rows_ == 0 || cols_ == 0 ? 0 : (rows_ - 1) * all.leading_dimension() + cols_);
        Batch<T> batch{.first = DeviceMatrix<Element>(span, rows_, cols_, all.leading_dimension()),
                       .count = count_,
                       .stride = rows_ * all.leading_dimension()};
        if (layout_.pointers) batch.pointers = std::as_const(pointers_).span();
        return batch;
    }

    // op() of all matrices, one after the other.
    std::vector<Element> packed() const { return in_order(memory_.packed()); }
    std::string damage() const { return memory_.damage(); }

  private:
    void find() {
        if (!layout_.pointers) return;
        const DeviceMatrix<Element> all = memory_.view();
        std::vector<T*> pointers(count_);
        for (std::size_t i = 0; i < count_; ++i)
            pointers[i] = all.data() + (count_ - 1 - i) * rows_ * all.leading_dimension();
        pointers_ = DeviceBuffer<T*>(std::span<T* const>(pointers));
    }

    // With pointers, the matrices are stored in reverse order.
    std::vector<Element> in_order(const std::vector<Element>& matrices) const {
        if (!layout_.pointers) return matrices;
        std::vector<Element> others;
        for (std::size_t i = count_; i-- > 0;) {
            const auto begin = matrices.begin() + static_cast<std::ptrdiff_t>(i * rows_ * cols_);
            others.insert(others.end(), begin, begin + static_cast<std::ptrdiff_t>(rows_ * cols_));
        }
        return others;
    }

    std::vector<Element> as_stored(std::span<const Element> packed) const {
        std::vector<Element> stored(packed.begin(), packed.end());
        if (layout_.op == Op::kTranspose) {
            for (std::size_t e = 0; e < stored.size(); ++e) {
                const std::size_t in_matrix = e % (rows_ * cols_);
                stored[e] = packed[e - in_matrix + in_matrix % cols_ * rows_ + in_matrix / cols_];
            }
        }
        return in_order(stored);
    }

    BatchLayout layout_;
    std::size_t count_, rows_, cols_;
    mutable GuardedMatrix<Element> memory_;
    DeviceBuffer<T*> pointers_;
};

}  // namespace course
