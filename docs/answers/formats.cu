// Exercises on sparse formats: one matrix in each of them, and how many numbers each stores. 4th
// edition 14.1 and 14.2, 5th edition 17.1 and 17.2. Only the host works here; day 35 has the
// kernels.
//
//   ./course run docs/answers/formats.cu
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

using Numbers = std::vector<int>;

constexpr int kSide = 4, kNone = -1;
constexpr int kMatrix[kSide][kSide] = {{1, 0, 7, 0}, {0, 0, 8, 0}, {0, 4, 3, 0}, {2, 0, 0, 1}};

std::size_t print(const char* name, const Numbers& numbers) {
    std::printf("  %-8s", name);
    for (int number : numbers)
        number == kNone ? std::printf("  -") : std::printf(" %2d", number);
    std::printf("\n");
    return numbers.size();
}

int main() {
    Numbers rows, columns, values, starts = {0}, lengths(kSide);
    for (int row = 0; row < kSide; ++row) {
        for (int column = 0; column < kSide; ++column)
            if (kMatrix[row][column] != 0) {
                rows.push_back(row);
                columns.push_back(column);
                values.push_back(kMatrix[row][column]);
                ++lengths[row];
            }
        starts.push_back(static_cast<int>(values.size()));
    }
    const int longest = *std::max_element(lengths.begin(), lengths.end());
    Numbers ell_columns, ell_values, order(kSide), jds_columns, jds_values, jds_starts;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return lengths[a] > lengths[b]; });
    for (int t = 0; t < longest; ++t) {
        jds_starts.push_back(static_cast<int>(jds_values.size()));
        for (int row = 0; row < kSide; ++row) {
            const bool has_one = t < lengths[row];
            ell_columns.push_back(has_one ? columns[starts[row] + t] : kNone);
            ell_values.push_back(has_one ? values[starts[row] + t] : kNone);
        }
        for (int row : order)
            if (t < lengths[row]) {
                jds_columns.push_back(columns[starts[row] + t]);
                jds_values.push_back(values[starts[row] + t]);
            }
    }
    jds_starts.push_back(static_cast<int>(jds_values.size()));

    std::printf("COO\n");
    std::size_t coo = print("rows", rows) + print("columns", columns);
    coo += print("values", values);
    std::printf("  %zu numbers: 3z\nCSR\n", coo);
    std::size_t csr = print("starts", starts) + print("columns", columns);
    csr += print("values", values);
    std::printf("  %zu numbers: 2z + m + 1\nELL, column after column\n", csr);
    const std::size_t ell = print("columns", ell_columns) + print("values", ell_values);
    std::printf("  %zu numbers: 2 m times the longest row\nJDS\n", ell);
    std::size_t jds = print("rows", order) + print("starts", jds_starts);
    jds += print("columns", jds_columns) + print("values", jds_values);
    std::printf("  %zu numbers: 2z + m + the longest row + 1\n", jds);

    // CSC: the same numbers, column after column. The 5th edition asks for it, too.
    Numbers csc_starts = {0}, csc_rows, csc_values;
    for (int column = 0; column < kSide; ++column) {
        for (int row = 0; row < kSide; ++row)
            if (kMatrix[row][column] != 0) {
                csc_rows.push_back(row);
                csc_values.push_back(kMatrix[row][column]);
            }
        csc_starts.push_back(static_cast<int>(csc_values.size()));
    }
    std::printf("CSC\n");
    std::size_t csc = print("starts", csc_starts) + print("rows", csc_rows);
    csc += print("values", csc_values);
    std::printf("  %zu numbers: 2z + n + 1\n", csc);
    const std::size_t z = values.size(), m = kSide, l = longest;
    return coo == 3 * z && csr == 2 * z + m + 1 && ell == 2 * m * l && jds == 2 * z + m + l + 1 &&
                   csc == 2 * z + kSide + 1
               ? 0
               : 1;
}
