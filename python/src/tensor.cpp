#include "tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace course_python {
namespace nb = nanobind;
namespace {

std::string name_of(nb::dlpack::dtype type) {
    const auto named = [&](const char* kind) { return fmt::format("{}{}", kind, type.bits); };
    switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
        case nb::dlpack::dtype_code::Int:
            return named("int");
        case nb::dlpack::dtype_code::UInt:
            return named("uint");
        case nb::dlpack::dtype_code::Float:
            return named("float");
        case nb::dlpack::dtype_code::Bfloat:
            return named("bfloat");
        case nb::dlpack::dtype_code::Complex:
            return named("complex");
        case nb::dlpack::dtype_code::Bool:
            return "bool";
        default:
            return fmt::format("DLPack type {} of {} bits", type.code, type.bits);
    }
}

// "(3, 4)", as Python prints it.
template <class Number>
std::string tuple(const std::vector<Number>& numbers) {
    return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}

}  // namespace

Tensor::Tensor(std::string name, nb::handle object, Access access) : name_(std::move(name)), access_(access) {
    const auto take = [&](auto& array) {
        if (!nb::try_cast(object, array)) {
            throw std::invalid_argument(fmt::format(
                "{} is a {} that cannot be {}; expected a tensor on the CPU or a CUDA device{}", name_,
                nb::inst_name(object).c_str(), access == Access::kWrite ? "written to" : "read",
                access == Access::kWrite ? ", not read-only" : ""));
        }
        data_ = const_cast<void*>(static_cast<const void*>(array.data()));
        for (std::size_t i = 0; i < array.ndim(); ++i) {
            shape_.push_back(array.shape(i));
            strides_.push_back(array.stride(i));
        }
        type_ = name_of(array.dtype());
        element_bytes_ = array.itemsize();
        device_ = array.device_id();
        const int type = array.device_type();
        on_gpu_ = type == nb::device::cuda::value || type == nb::device::cuda_managed::value;
        if (!on_gpu_ && type != nb::device::cpu::value && type != nb::device::cuda_host::value) {
            refuse(fmt::format("on DLPack device type {}", type), "the CPU or a CUDA device");
        }
    };
    if (access == Access::kWrite) {
        take(written_);
    } else {
        take(read_);
    }
    if (element_bytes_ != 0 && reinterpret_cast<std::uintptr_t>(data_) % element_bytes_ != 0) {
        refuse(fmt::format("at address {}", data_),
               fmt::format("a multiple of its {} bytes", element_bytes_));
    }
}

std::string Tensor::place() const {
    return on_gpu_ ? fmt::format("CUDA device {}", device_) : "the CPU";
}

void Tensor::refuse(const std::string& what_it_is, const std::string& expected) const {
    throw std::invalid_argument(fmt::format("{} is {}; expected {}", name_, what_it_is, expected));
}

void Tensor::refuse_type(const std::string& expected) const {
    throw nb::type_error(fmt::format("{} is {}; expected {}", name_, type_, expected).c_str());
}

void Tensor::require_type(std::string_view expected) const {
    if (type_ != expected) refuse_type(std::string(expected));
}

void Tensor::require_matrix() const {
    if (shape_.size() != 2) refuse("of shape " + tuple(shape_), "two dimensions");
}

void Tensor::require_shape(const std::vector<std::size_t>& expected) const {
    if (shape_ != expected) refuse("of shape " + tuple(shape_), tuple(expected));
}

void Tensor::require_packed() const {
    if (shape_[0] > 1 && strides_[0] != 1) {
        refuse("a tensor with stride " + std::to_string(strides_[0]),
               "elements side by side: make a contiguous copy");
    }
}

std::size_t Tensor::leading_dimension() const {
    const std::size_t rows = shape_[0], cols = shape_[1];
    const bool side_by_side = cols <= 1 || strides_[1] == 1;
    const bool rows_in_order = rows <= 1 || strides_[0] >= static_cast<std::int64_t>(cols);
    if (!empty() && !(side_by_side && rows_in_order)) {
        refuse("a tensor with strides " + tuple(strides_),
               "rows that do not overlap, with elements side by side: make a contiguous copy");
    }
    return rows <= 1 || empty() ? cols : static_cast<std::size_t>(strides_[0]);
}

void Tensor::require_contiguous() const {
    std::int64_t expected = 1;
    for (std::size_t i = shape_.size(); i-- > 0 && !empty();) {
        if (shape_[i] > 1 && strides_[i] != expected) {
            refuse("a tensor with strides " + tuple(strides_),
                   "elements side by side: make a contiguous copy");
        }
        expected *= static_cast<std::int64_t>(shape_[i]);
    }
}

void Tensor::require_heads() const {
    if (shape_.size() != 4) {
        refuse("of shape " + tuple(shape_), "four dimensions: batch, heads, length and dim");
    }
    const bool in_order =
        std::all_of(strides_.begin(), strides_.end(), [](std::int64_t stride) { return stride >= 0; });
    if (!empty() && ((shape_[3] > 1 && strides_[3] != 1) || !in_order)) {
        refuse("a tensor with strides " + tuple(strides_),
               "the elements of a row side by side: make a contiguous copy");
    }
}

std::size_t Tensor::row_count() const {
    if (shape_.empty()) refuse("of shape " + tuple(shape_), "at least one dimension");
    std::size_t rows = 1;
    for (std::size_t i = 0; i + 1 < shape_.size(); ++i)
        rows *= shape_[i];
    return rows;
}

std::size_t Tensor::collapsed_leading_dimension() const {
    const std::size_t cols = shape_.back();
    bool fits = empty() || cols == 1 || strides_.back() == 1;
    std::int64_t of_rows = 0;  // the distance between rows, 0 as long as there is one
    std::int64_t rows = 1;     // in the dimensions seen
    for (std::size_t i = shape_.size() - 1; i-- > 0 && !empty();) {
        if (shape_[i] == 1) continue;
        if (rows == 1) of_rows = strides_[i];
        fits = fits && strides_[i] == of_rows * rows && of_rows >= static_cast<std::int64_t>(cols);
        rows *= static_cast<std::int64_t>(shape_[i]);
    }
    if (!fits) {
        refuse("a tensor with strides " + tuple(strides_),
               "rows one after the other, with elements side by side: make a contiguous copy");
    }
    return rows == 1 || empty() ? cols : static_cast<std::size_t>(of_rows);
}

Tensor::Layout Tensor::matrix_layout() const {
    if (shape_.size() != 2 && shape_.size() != 3)
        refuse("of shape " + tuple(shape_), "two or three dimensions");
    const std::size_t dims = shape_.size();
    const std::size_t rows = shape_[dims - 2], cols = shape_[dims - 1];
    if (empty()) return {false, cols};
    const std::int64_t down = strides_[dims - 2], across = strides_[dims - 1];
    const auto fits = [](std::size_t extent, std::int64_t step, std::size_t length) {
        return extent == 1 || step >= static_cast<std::int64_t>(length);
    };
    const bool ordered = dims == 2 || shape_[0] == 1 || strides_[0] >= 0;
    // A matrix of one row or column is either; then its other stride tells how its rows lie.
    if (ordered && (cols == 1 || across == 1) && fits(rows, down, cols))
        return {false, rows == 1 ? cols : static_cast<std::size_t>(down)};
    if (ordered && (rows == 1 || down == 1) && fits(cols, across, rows))
        return {true, cols == 1 ? rows : static_cast<std::size_t>(across)};
    refuse("a tensor with strides " + tuple(strides_),
           "matrices, or transposed ones, with the elements of a row side by side: make a contiguous copy");
}

std::string Tensor::shape_text() const {
    return tuple(shape_);
}

bool Tensor::empty() const {
    return std::find(shape_.begin(), shape_.end(), 0U) != shape_.end();
}

std::size_t Tensor::extent() const {
    if (empty()) return 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < shape_.size(); ++i)
        if (shape_[i] > 1) last += (shape_[i] - 1) * static_cast<std::size_t>(strides_[i]);
    return last + 1;
}

course::DeviceSpan<std::byte> Tensor::memory() const {
    return course::DeviceSpan<std::byte>::from_device_pointer(static_cast<std::byte*>(data_),
                                                              extent() * element_bytes_);
}

}  // namespace course_python
