// Chapter 17: figure 17.18, which has CSC in it and CSR in its title, and the order of the rows in
// JDS.
//
//   ./course run docs/errata/sparse.cu
#include <algorithm>
#include <numeric>

#include "errata.hpp"

constexpr int kSide = 4;
constexpr int kMatrix[kSide][kSide] = {{2, 0, 5, 0}, {0, 3, 4, 6}, {0, 0, 0, 7}, {1, 8, 0, 0}};

// CSR: one thread per row, whose elements are adjacent.
__global__ void multiply_csr(const int* starts, const int* columns, const int* values, const int* x, int* y) {
    const int row = threadIdx.x;
    int sum = 0;
    for (int i = starts[row]; i < starts[row + 1]; ++i)
        sum += values[i] * x[columns[i]];
    y[row] = sum;
}

// CSC: one thread per column. Several columns have elements of the same row: atomics, and a result
// that has to be 0 before.
__global__ void multiply_csc(const int* starts, const int* rows, const int* values, const int* x, int* y) {
    const int column = threadIdx.x;
    for (int i = starts[column]; i < starts[column + 1]; ++i)
        atomicAdd(&y[rows[i]], values[i] * x[column]);
}

// JDS: thread p has the row at place p of the sorted order. Element t of all rows lies from
// starts[t] on, without gaps.
__global__ void multiply_jds(const int* starts, const int* columns, const int* values, const int* row_at,
                             const int* lengths, const int* x, int* y) {
    const int place = threadIdx.x;
    int sum = 0;
    for (int t = 0; t < lengths[place]; ++t)
        sum += values[starts[t] + place] * x[columns[starts[t] + place]];
    y[row_at[place]] = sum;
}

int wrong_with_jds(bool descending, const errata::OnDevice<int>& x, const std::vector<int>& expected) {
    std::vector<std::vector<int>> columns_of(kSide);
    for (int row = 0; row < kSide; ++row)
        for (int column = 0; column < kSide; ++column)
            if (kMatrix[row][column] != 0) columns_of[row].push_back(column);
    std::vector<int> row_at(kSide), starts, columns, values, lengths;
    std::iota(row_at.begin(), row_at.end(), 0);
    std::stable_sort(row_at.begin(), row_at.end(), [&](int a, int b) {
        return descending ? columns_of[a].size() > columns_of[b].size()
                          : columns_of[a].size() < columns_of[b].size();
    });
    for (int row : row_at)
        lengths.push_back(static_cast<int>(columns_of[row].size()));
    for (int t = 0; t < kSide; ++t) {
        starts.push_back(static_cast<int>(values.size()));
        for (int row : row_at)
            if (t < static_cast<int>(columns_of[row].size())) {
                columns.push_back(columns_of[row][t]);
                values.push_back(kMatrix[row][columns_of[row][t]]);
            }
    }
    // Room for what is read behind the end in the wrong order.
    columns.resize(columns.size() + kSide, 0);
    values.resize(values.size() + kSide, 0);
    const errata::OnDevice<int> on_starts(starts), on_columns(columns), on_values(values), on_rows(row_at),
        on_lengths(lengths);
    const errata::OnDevice<int> y(kSide, -1);
    multiply_jds<<<1, kSide>>>(on_starts.data(), on_columns.data(), on_values.data(), on_rows.data(),
                               on_lengths.data(), x.data(), y.data());
    return errata::differences(y.to_host(), expected);
}

int main() {
    std::vector<int> vector = {1, 2, 3, 4}, expected(kSide), starts = {0}, rows, values;
    for (int column = 0; column < kSide; ++column) {
        for (int row = 0; row < kSide; ++row) {
            expected[row] += kMatrix[row][column] * vector[column];
            if (kMatrix[row][column] == 0) continue;
            rows.push_back(row);
            values.push_back(kMatrix[row][column]);
        }
        starts.push_back(static_cast<int>(values.size()));
    }
    const errata::OnDevice<int> x(vector), on_starts(starts), on_rows(rows), on_values(values);
    const errata::OnDevice<int> by_title(kSide, 0), by_column(kSide, 0), used_before(kSide, 1);
    multiply_csr<<<1, kSide>>>(on_starts.data(), on_rows.data(), on_values.data(), x.data(), by_title.data());
    multiply_csc<<<1, kSide>>>(on_starts.data(), on_rows.data(), on_values.data(), x.data(),
                               by_column.data());
    multiply_csc<<<1, kSide>>>(on_starts.data(), on_rows.data(), on_values.data(), x.data(),
                               used_before.data());
    const int right = errata::differences(by_column.to_host(), expected);
    bool all = errata::show("17.18a", "elements of y wrong",
                            errata::differences(by_title.to_host(), expected), right);
    all &= errata::show("17.18b", "elements of y wrong", errata::differences(used_before.to_host(), expected),
                        right);
    all &= errata::show("17.6", "elements of y wrong", wrong_with_jds(false, x, expected),
                        wrong_with_jds(true, x, expected));
    return all ? 0 : 1;
}
