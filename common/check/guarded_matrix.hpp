// A matrix in device memory that detects wrong writes of a kernel. It lies between guards
// (guarded_buffer.hpp), and the padding between its rows holds NaN, or -1 for integers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/check/guarded_buffer.hpp"

namespace course {

// The layout of a matrix in its memory, in elements.
struct MatrixLayout {
    std::size_t misaligned_by = 0;  // before the first element
    std::size_t padding = 0;        // after each row
};

// T: anything that is NaN when all of its bits are set, or an integer.
template <class T>
class GuardedMatrix {
  public:
    // Copies rows x cols elements from `packed`, row by row. `padding` elements of NaN or -1
    // follow each row except the last, and the first element is `misaligned_by` elements after an
    // aligned address. Throws std::invalid_argument when `packed` does not have rows * cols
    // elements.
    GuardedMatrix(std::span<const T> packed, std::size_t rows, std::size_t cols, std::size_t padding = 0,
                  std::size_t misaligned_by = 0)
        : rows_(rows),
          cols_(cols),
          stride_(cols + padding),
          memory_(rows == 0 || cols == 0 ? 0 : (rows - 1) * stride_ + cols, misaligned_by) {
        if (packed.size() != rows * cols) {
            throw std::invalid_argument("GuardedMatrix: packed has " + std::to_string(packed.size()) +
                                        " elements; expected " + std::to_string(rows) + " x " +
                                        std::to_string(cols));
        }
        std::vector<T> padded = memory_.to_host();  // all bits set
        for (std::size_t row = 0; row < rows && cols > 0; ++row)
            std::ranges::copy(packed.subspan(row * cols, cols), padded.data() + row * stride_);
        memory_.copy_from(padded);
        given_ = std::move(padded);
    }

    GuardedMatrix(std::span<const T> packed, std::size_t rows, std::size_t cols, MatrixLayout layout)
        : GuardedMatrix(packed, rows, cols, layout.padding, layout.misaligned_by) {}

    // NaN everywhere: an output that nothing has written.
    GuardedMatrix(std::size_t rows, std::size_t cols, std::size_t padding = 0, std::size_t misaligned_by = 0)
        : rows_(rows),
          cols_(cols),
          stride_(cols + padding),
          memory_(rows == 0 || cols == 0 ? 0 : (rows - 1) * stride_ + cols, misaligned_by) {}

    GuardedMatrix(std::size_t rows, std::size_t cols, MatrixLayout layout)
        : GuardedMatrix(rows, cols, layout.padding, layout.misaligned_by) {}

    // Fills the matrix with NaN again, and renews the guards.
    void spoil() { memory_.spoil(); }

    DeviceMatrix<T> view() { return {memory_.span(), rows_, cols_, stride_}; }

    // The elements, without the padding between the rows.
    std::vector<T> packed() const {
        const std::vector<T> padded = memory_.to_host();
        std::vector<T> values(rows_ * cols_);
        for (std::size_t i = 0; i < values.size(); i += cols_)
            std::copy_n(padded.data() + i / cols_ * stride_, cols_, values.data() + i);
        return values;
    }

    // Is every bit still as the constructor wrote it, in the padding, too?
    bool unchanged() const {
        const std::vector<T> padded = memory_.to_host();
        return padded.empty() || std::memcmp(padded.data(), given_.data(), padded.size() * sizeof(T)) == 0;
    }

    // Describes writes to the padding and out of range; empty if there are none. Waits for the
    // device.
    std::string damage() const {
        std::size_t written = 0;
        if (stride_ > cols_) {
            const std::vector<T> padded = memory_.to_host();
            for (std::size_t row = 0; row * stride_ < padded.size(); ++row)
                for (std::size_t i = row * stride_ + cols_; i < std::min((row + 1) * stride_, padded.size());
                     ++i)
                    written += is_unwritten(padded[i]) ? 0 : 1;
        }
        return memory_.damage() +
               (written == 0 ? "" : std::to_string(written) + " elements written between rows");
    }

  private:
    std::size_t rows_;
    std::size_t cols_;
    std::size_t stride_;
    GuardedBuffer<T> memory_;
    std::vector<T> given_;
};

}  // namespace course
