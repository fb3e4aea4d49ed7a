// A sparse matrix on the host in the format that every other one is made from: compressed sparse
// rows.
//
// A matrix never changes after it was made, so copies share its arrays and count their users:
// passing one by value copies no entry.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index.hpp"

namespace day35 {

struct Shape {
    Index rows = 0;
    Index cols = 0;

    bool operator==(const Shape&) const = default;
};

// For the messages of course::require.
inline std::string to_text(const Shape& shape) {
    return std::to_string(shape.rows) + " x " + std::to_string(shape.cols);
}

// An array that is never written again; copies share it. It cannot be moved from, so it is never
// empty by accident.
template <class T>
class SharedArray {
  public:
    SharedArray(std::vector<T> values) : values_(std::make_shared<const std::vector<T>>(std::move(values))) {}
    SharedArray(const SharedArray&) = default;
    SharedArray& operator=(const SharedArray&) = default;
    ~SharedArray() = default;

    std::span<const T> span() const { return *values_; }

  private:
    std::shared_ptr<const std::vector<T>> values_;
};

// Compressed sparse rows (PMPP 14.3): row r has the entries row_start[r] to row_start[r + 1] - 1,
// at most 2^31 - 1 of them; row_start has rows + 1 offsets. Within a row columns ascend; a column
// may occur twice (duplicates add up). 0 rows, 0 columns and 0 entries are legal. The constructor
// checks this: std::invalid_argument names the row.
class CsrMatrix {
  public:
    CsrMatrix(Shape shape, std::vector<Offset> row_start, std::vector<Index> cols, std::vector<float> values);
    // From entries in any order; duplicates stay in the order they came in. Throws
    // std::invalid_argument for arrays of different lengths and entries outside of the matrix.
    static CsrMatrix from_entries(Shape shape, std::span<const Index> rows, std::span<const Index> cols,
                                  std::span<const float> values);

    Shape shape() const { return shape_; }
    Offset entries() const { return static_cast<Offset>(cols().size()); }
    std::span<const Offset> row_start() const { return row_start_.span(); }
    std::span<const Index> cols() const { return cols_.span(); }
    std::span<const float> values() const { return values_.span(); }
    Index row_length(Index row) const { return static_cast<Index>(row_start()[row + 1] - row_start()[row]); }

  private:
    Shape shape_;
    SharedArray<Offset> row_start_;
    SharedArray<Index> cols_;
    SharedArray<float> values_;
};

}  // namespace day35
