// Code that day 25's tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "attention_reference.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"

namespace day25_test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline std::vector<float> normal(std::size_t size, std::uint64_t seed) {
    return course::make_data<float>(size, course::DataPattern::kNormal, seed);
}

// A matrix on the device whose rows need not be packed or aligned. NaN fills the memory between
// rows; guards surround all of it.
class Matrix {
  public:
    Matrix(std::size_t rows, std::size_t cols, std::size_t row_padding = 0, std::size_t offset = 0)
        : rows_(rows), cols_(cols), step_(cols + row_padding), memory_(rows * step_, offset) {}

    std::size_t rows() const { return rows_; }
    std::size_t cols() const { return cols_; }
    course::DeviceMatrix<float> view() { return {memory_.span(), rows_, cols_, step_}; }
    course::DeviceSpan<float> row() { return memory_.span().subspan(0, cols_); }

    void set(const std::vector<float>& values) {
        ASSERT_EQ(values.size(), rows_ * cols_);
        std::vector<float> padded(rows_ * step_, kNan);
        for (std::size_t i = 0; i < values.size(); ++i)
            padded[i / cols_ * step_ + i % cols_] = values[i];
        memory_.copy_from(padded);
    }

    std::vector<float> values() const {
        const std::vector<float> padded = memory_.to_host();
        std::vector<float> result(rows_ * cols_);
        for (std::size_t i = 0; i < result.size(); ++i)
            result[i] = padded[i / cols_ * step_ + i % cols_];
        return result;
    }

    // Describes a write outside the matrix, or is "".
    std::string damage() const {
        const std::vector<float> padded = memory_.to_host();
        for (std::size_t i = 0; i < padded.size(); ++i)
            if (i % step_ >= cols_ && !std::isnan(padded[i])) return "the padding of a row was written";
        return memory_.damage();
    }

  private:
    std::size_t rows_, cols_, step_;
    course::GuardedBuffer<float> memory_;
};

inline void expect_within(const Matrix& got, const day25::Bounded& expected) {
    ASSERT_EQ(got.rows() * got.cols(), expected.value.size());
    course::VerifyResult result = day25::verify(got.values(), expected);
    result.damage = got.damage();
    EXPECT_TRUE(result.ok()) << result.message();
}

}  // namespace day25_test
