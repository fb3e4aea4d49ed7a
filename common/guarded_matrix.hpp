// A matrix for tests, in device memory: between guards (guarded_buffer.hpp), its rows further apart than they are long, with NaN between them.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "common/guarded_buffer.hpp"

namespace course {

// T: floating point, or one made from a float (__half).
template <class T>
class GuardedMatrix {
  public:
    // `packed` holds rows x cols elements. `padding` elements follow each row; the first element is `misaligned_by` elements after an
    // address aligned to 256 bytes.
    GuardedMatrix(const std::vector<T>& packed, std::size_t rows, std::size_t cols, std::size_t padding = 0,
                  std::size_t misaligned_by = 0)
        : rows_(rows),
          cols_(cols),
          stride_(cols + padding),
          memory_(rows == 0 || cols == 0 ? 0 : (rows - 1) * stride_ + cols, misaligned_by) {
        std::vector<T> padded(memory_.size(), T(std::numeric_limits<float>::quiet_NaN()));
        for (std::size_t i = 0; i < packed.size(); ++i)
            padded[i / cols * stride_ + i % cols] = packed[i];
        memory_.copy_from(padded);
    }

    DeviceMatrix<T> view() { return {memory_.span(), rows_, cols_, stride_}; }

    // The elements, without what is between the rows.
    std::vector<T> packed() const {
        const std::vector<T> padded = memory_.to_host();
        std::vector<T> values(rows_ * cols_);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = padded[i / cols_ * stride_ + i % cols_];
        return values;
    }

    // What was written where nothing may be written, in words.
    std::string damage() const {
        const std::vector<T> padded = memory_.to_host();
        std::size_t written = 0;
        for (std::size_t i = 0; i < padded.size(); ++i)
            written += i % stride_ >= cols_ && !std::isnan(static_cast<float>(padded[i])) ? 1 : 0;
        return memory_.damage() +
               (written == 0 ? "" : std::to_string(written) + " elements written between rows");
    }

  private:
    std::size_t rows_;
    std::size_t cols_;
    std::size_t stride_;
    GuardedBuffer<T> memory_;
};

}  // namespace course
