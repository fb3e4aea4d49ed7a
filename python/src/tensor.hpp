// Tensors of other libraries, taken in by DLPack without a copy, and checked: every mistake becomes
// a TypeError or ValueError that names the argument, its value and what was expected.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bench/attention.hpp"
#include "common/device/device_view.hpp"
#include "common/device/operands.hpp"

namespace course_python {

// The names that NumPy and PyTorch give to the types that kernels know.
template <class T>
constexpr std::string_view type_name() {
    using Value = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Value, float>) return "float32";
    if constexpr (std::is_same_v<Value, double>) return "float64";
    if constexpr (std::is_same_v<Value, __half>) return "float16";
    if constexpr (std::is_same_v<Value, __nv_bfloat16>) return "bfloat16";
    if constexpr (std::is_same_v<Value, std::int8_t>) return "int8";
    if constexpr (std::is_same_v<Value, std::uint8_t> || std::is_same_v<Value, std::byte>) return "uint8";
    if constexpr (std::is_same_v<Value, std::int32_t>) return "int32";
    if constexpr (std::is_same_v<Value, std::uint32_t>) return "uint32";
    if constexpr (std::is_same_v<Value, std::int64_t>) return "int64";
    if constexpr (std::is_same_v<Value, std::uint64_t>) return "uint64";
}

enum class Access { kRead, kWrite };

// Keeps the memory alive as long as it lives. Must be made and destroyed with the GIL held.
class Tensor {
  public:
    // `object` has __dlpack__, or is what that returned.
    Tensor(std::string name, nanobind::handle object, Access access);

    const std::string& name() const { return name_; }
    const std::string& type() const { return type_; }
    const std::vector<std::size_t>& shape() const { return shape_; }
    const std::vector<std::int64_t>& strides() const { return strides_; }
    void* data() const { return data_; }
    Access access() const { return access_; }
    bool on_gpu() const { return on_gpu_; }
    int device() const { return device_; }
    std::string place() const;  // "the CPU" or "CUDA device 0"

    // The tensor as what it is meant to be: TypeError for another type of element, ValueError for
    // another shape or layout. Rows may lie apart, the elements of a row may not.
    template <class T>
    course::DeviceMatrix<T> matrix(std::size_t rows, std::size_t cols) const {
        require_type(type_name<T>());
        require_shape({rows, cols});
        return {view<T>(), rows, cols, leading_dimension()};
    }
    template <class T>
    course::DeviceMatrix<T> matrix() const {
        require_matrix();
        return matrix<T>(shape_[0], shape_[1]);
    }
    // The last dimension as columns, all others together as rows: they must be as far apart as if
    // they were one.
    template <class T>
    course::DeviceMatrix<T> rows() const {
        require_type(type_name<T>());
        return {view<T>(), row_count(), shape_.back(), collapsed_leading_dimension()};
    }
    // `shape` elements, side by side.
    template <class T>
    course::DeviceSpan<T> packed(const std::vector<std::size_t>& shape) const {
        require_type(type_name<T>());
        require_shape(shape);
        require_contiguous();
        return view<T>();
    }
    // An operand of a matrix product: one matrix, or in three dimensions a batch of them. Row-major
    // or its transpose: no copy is needed for either.
    template <class T>
    struct Matrices {
        course::Batch<T> batch;
        course::Op op = course::Op::kNone;
        bool is_batch = false;
    };
    template <class T>
    Matrices<T> matrices() const {
        require_type(type_name<T>());
        return matrices_of_any_type<T>();
    }
    // Of bool, as NumPy, PyTorch and CuPy store it: a byte, 0 or 1.
    Matrices<const std::uint8_t> bytes_of_bool() const {
        require_type("bool");
        return matrices_of_any_type<const std::uint8_t>();
    }
    // [batch, heads, length, dim]: the elements of a row side by side, all else as it is.
    template <class T>
    course::attention::HeadsView<T> heads() const {
        require_type(type_name<T>());
        require_heads();
        const course::attention::Extents extents{shape_[0], shape_[1], shape_[2], shape_[3]};
        if (empty()) return course::attention::HeadsView<T>::from_device_pointer(nullptr, extents);
        const auto stride = [&](std::size_t i) {
            return shape_[i] == 1 ? std::size_t{0} : static_cast<std::size_t>(strides_[i]);
        };
        return {view<T>(), extents, {stride(0), stride(1), stride(2)}};
    }
    template <class T>
    course::DeviceSpan<T> vector(std::size_t size) const {
        require_type(type_name<T>());
        require_shape({size});
        require_packed();
        return view<T>();
    }

    // From the first element to the last. Memory between the rows counts as a tensor's own.
    course::DeviceSpan<std::byte> memory() const;

    void require_type(std::string_view expected) const;
    void require_shape(const std::vector<std::size_t>& expected) const;
    [[noreturn]] void refuse_type(const std::string& expected) const;
    [[noreturn]] void refuse(const std::string& what_it_is, const std::string& expected) const;

    std::string shape_text() const;  // "(3, 4)"
    bool empty() const;

  private:
    struct Layout {
        bool transposed = false;
        std::size_t leading_dimension = 0;
    };
    void require_matrix() const;
    void require_packed() const;
    void require_contiguous() const;
    void require_heads() const;
    std::size_t leading_dimension() const;
    std::size_t row_count() const;
    std::size_t collapsed_leading_dimension() const;
    Layout matrix_layout() const;
    std::size_t extent() const;  // elements from the first to the last

    template <class T>
    Matrices<T> matrices_of_any_type() const {
        const Layout layout = matrix_layout();
        const std::size_t down = shape_[shape_.size() - 2], across = shape_.back();
        const std::size_t rows = layout.transposed ? across : down;
        const std::size_t cols = layout.transposed ? down : across;
        const bool is_batch = shape_.size() == 3;
        const std::size_t count = is_batch ? shape_[0] : 1;
        // Of a batch without matrices only the shape counts.
        const auto memory =
            count == 0 ? course::DeviceSpan<T>::from_device_pointer(nullptr, rows * cols) : view<T>();
        return {{.first = {memory, rows, cols, layout.leading_dimension},
                 .count = count,
                 .stride = count > 1 ? static_cast<std::size_t>(strides_[0]) : 0},
                layout.transposed ? course::Op::kTranspose : course::Op::kNone,
                is_batch};
    }

    template <class T>
    course::DeviceSpan<T> view() const {
        return course::DeviceSpan<T>::from_device_pointer(static_cast<T*>(data_), extent());
    }

    std::string name_;
    Access access_;
    nanobind::ndarray<nanobind::ro> read_;  // one of these two holds the memory
    nanobind::ndarray<> written_;
    void* data_ = nullptr;
    std::vector<std::size_t> shape_;
    std::vector<std::int64_t> strides_;
    std::string type_;
    std::size_t element_bytes_ = 0;
    bool on_gpu_ = false;
    int device_ = 0;
};

}  // namespace course_python
