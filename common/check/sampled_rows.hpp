// Samples rows of a large result, where a CPU reference for all rows would take too long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace course {

// Up to `most` of the rows 0 to rows - 1, evenly distributed, including the first and the last
// one.
inline std::vector<std::size_t> sampled_rows(std::size_t rows, std::size_t most) {
    std::vector<std::size_t> sample;
    const std::size_t count = std::min(rows, most);
    for (std::size_t i = 0; i < count; ++i)
        sample.push_back(count == 1 ? 0 : i * (rows - 1) / (count - 1));
    return sample;
}

// A packed copy of the given rows of a packed matrix.
template <class T>
std::vector<T> rows_of(std::span<const T> values, const std::vector<std::size_t>& rows, std::size_t cols) {
    std::vector<T> result;
    for (const std::size_t row : rows)
        result.insert(result.end(), values.begin() + static_cast<std::ptrdiff_t>(row * cols),
                      values.begin() + static_cast<std::ptrdiff_t>((row + 1) * cols));
    return result;
}

}  // namespace course
