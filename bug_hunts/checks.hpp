// What the launchers ask of their arguments. Throws std::invalid_argument, which begins with the
// name of the hunt and says what is wrong and what was expected.
#pragma once

#include <string_view>

#include "common/check/require.hpp"
#include "hunts.hpp"

namespace hunts {

// A span is a matrix of one row.
template <class T>
DeviceMatrix<T> as_row(DeviceSpan<T> span) {
    return DeviceMatrix<T>(span, 1, span.size());
}

template <class T>
DeviceSpan<T> as_span(const DeviceMatrix<T>& row) {
    return DeviceSpan<T>::from_device_pointer(row.data(), row.rows() * row.cols());
}

void require_shape(std::string_view hunt, std::string_view argument, DeviceMatrix<const float> matrix,
                   const Shape& expected);

void require_size(std::string_view hunt, std::string_view argument, DeviceSpan<const float> span,
                  std::size_t expected);

void require_apart(std::string_view hunt, DeviceMatrix<const float> in, DeviceMatrix<const float> out);

}  // namespace hunts
