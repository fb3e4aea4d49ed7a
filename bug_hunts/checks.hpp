// What the launchers ask of their arguments. Throws std::invalid_argument, which begins with the name of the hunt and says what is
// wrong and what was expected.
#pragma once

#include <string>

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

void require(const std::string& hunt, bool condition, const std::string& message);

void require_shape(const std::string& hunt, const std::string& argument, DeviceMatrix<const float> matrix,
                   const Shape& expected);

void require_size(const std::string& hunt, const std::string& argument, DeviceSpan<const float> span,
                  std::size_t expected);

void require_apart(const std::string& hunt, DeviceMatrix<const float> in, DeviceMatrix<const float> out);

}  // namespace hunts
