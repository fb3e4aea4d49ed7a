// A matrix for tests, anywhere in its memory: what a kernel writes beside it or between its rows shows.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/check/guarded_buffer.hpp"

namespace day30 {

// Where a matrix lies in its buffer.
struct Layout {
    std::size_t offset = 0;   // elements before the first
    std::size_t padding = 0;  // after each row
};

template <class T>
class TestMatrix {
  public:
    TestMatrix(std::size_t rows, std::size_t cols, Layout layout)
        : rows_(rows), cols_(cols), step_(cols + layout.padding), buffer_(rows * step_, layout.offset) {}

    // Holding `values`, rows x cols of them, and between the rows what must not be read: NaN, or -1.
    TestMatrix(std::size_t rows, std::size_t cols, Layout layout, const std::vector<T>& values)
        : TestMatrix(rows, cols, layout) {
        before_ = buffer_.to_host();
        for (std::size_t row = 0; row < rows; ++row)
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * cols), cols,
                        before_.begin() + static_cast<std::ptrdiff_t>(row * step_));
        buffer_.copy_from(before_);
    }

    course::DeviceMatrix<T> matrix() { return {buffer_.span(), rows_, cols_, step_}; }

    std::vector<T> values() const {
        const std::vector<T> all = buffer_.to_host();
        std::vector<T> result;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (i % step_ < cols_) result.push_back(all[i]);
        return result;
    }

    // What was written outside the matrix, in words, or "".
    std::string damage() const {
        const std::vector<T> all = buffer_.to_host();
        std::string text = buffer_.damage();
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i % step_ >= cols_ && !course::is_unwritten(all[i]))
                return text + " the padding of a row was written";
        }
        return text;
    }

    bool unchanged() const {
        const std::vector<T> all = buffer_.to_host();
        return all.empty() || std::memcmp(all.data(), before_.data(), all.size() * sizeof(T)) == 0;
    }

  private:
    std::size_t rows_;
    std::size_t cols_;
    std::size_t step_;
    course::GuardedBuffer<T> buffer_;
    std::vector<T> before_;
};

}  // namespace day30
