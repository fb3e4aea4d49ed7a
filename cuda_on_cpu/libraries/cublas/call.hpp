// One call of a cuBLAS function: its arguments are checked, then its work is submitted to the
// handle's stream.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "cublas_v2.h"
#include "library_arguments.hpp"
#include "stream.hpp"

struct cublasContext {
    cudaStream_t stream = nullptr;
    cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
    cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
    cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
};

namespace cuda_on_cpu::blas {

bool is_alive(cublasHandle_t handle);

// alpha or beta: its value, or its address in device memory.
template <class T>
struct Scalar {
    const T* pointer = nullptr;
    T value{};
    T operator()() const { return pointer == nullptr ? value : *pointer; }
};

// The shape in which a column-major matrix is stored.
struct Shape {
    int rows;
    int columns;
};

inline Shape stored(cublasOperation_t operation, int rows, int columns) {
    return operation == CUBLAS_OP_N ? Shape{rows, columns} : Shape{columns, rows};
}

// The shape of n (n + 1) / 2 elements without gaps.
inline Shape packed(int n) {
    return n % 2 == 0 ? Shape{n + 1, n / 2} : Shape{n, n / 2 + 1};
}

// The checks stop at the first failure, which sets the status. run() then returns the status
// without running anything.
class Call {
  public:
    Call(cublasHandle_t handle, const char* function);

    Call& at_least(const char* name, long long value, long long least);
    Call& size(const char* name, long long value) { return at_least(name, value, 0); }
    Call& leading(const char* name, int value, int rows) { return at_least(name, value, std::max(1, rows)); }
    Call& increment(const char* name, int value);
    // Checks that the value is one of 0 .. count - 1.
    Call& option(const char* name, int value, int count);
    Call& given(const char* name, const void* pointer);
    Call& require(bool condition, cublasStatus_t otherwise, const char* sentence);

    // The memory that the work reads and writes. It is checked when the work runs.
    template <class T>
    Call& reads(const char* name, const T* matrix, Shape shape, int leading) {
        return add({name, matrix, sizeof(T) * positive(shape.rows), positive(shape.columns),
                    sizeof(T) * positive(leading), false});
    }
    template <class T>
    Call& writes(const char* name, T* matrix, Shape shape, int leading) {
        reads(name, matrix, shape, leading);
        return mark_written();
    }
    template <class T>
    Call& reads(const char* name, const T* vector, int n, int increment) {
        return add({name, vector, sizeof(T), positive(n), sizeof(T) * positive(std::abs(increment)), false});
    }
    template <class T>
    Call& writes(const char* name, T* vector, int n, int increment) {
        reads(name, vector, n, increment);
        return mark_written();
    }

    // Scalars are in host or device memory, according to the pointer mode.
    template <class T>
    Scalar<T> scalar(const char* name, const T* pointer) {
        given(name, pointer);
        if (status_ != CUBLAS_STATUS_SUCCESS) return {};
        if (on_device()) {
            reads(name, pointer, 1, 1);
            return {pointer, {}};
        }
        expect_host(name, pointer);
        return status_ == CUBLAS_STATUS_SUCCESS ? Scalar<T>{nullptr, *pointer} : Scalar<T>{};
    }
    template <class T>
    Call& result(const char* name, T* pointer, int count = 1) {
        given(name, pointer);
        if (status_ != CUBLAS_STATUS_SUCCESS) return *this;
        if (on_device()) return writes(name, pointer, count, 1);
        has_host_result_ = true;
        return expect_host(name, pointer);
    }

    // Checks a scalar in CUBLAS_POINTER_MODE_HOST.
    Call& expect_host(const char* name, const void* pointer);

    bool on_device() const { return handle_->pointer_mode == CUBLAS_POINTER_MODE_DEVICE; }
    bool ok() const { return status_ == CUBLAS_STATUS_SUCCESS; }
    cublasStatus_t status() const { return status_; }
    const char* function() const { return function_; }

    // `work` runs in the handle's stream if all its memory is device memory. It may return false if
    // it finds memory that is not.
    template <class WorkOfCall>
    cublasStatus_t run(WorkOfCall work) {
        if (!ok()) return status_;
        return submit_checked([work = std::move(work)] {
            if constexpr (std::is_void_v<decltype(work())>) {
                work();
                return true;
            } else {
                return work();
            }
        });
    }

  private:
    static std::size_t positive(long long value) { return value > 0 ? static_cast<std::size_t>(value) : 0; }
    Call& add(const Region& region);
    Call& mark_written();
    cublasStatus_t submit_checked(std::function<bool()> work);

    cublasHandle_t handle_;
    const char* function_;
    cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
    std::vector<Region> regions_;
    bool has_host_result_ = false;
};

// The elements of a vector in order: with a negative increment the first one has the highest
// address.
template <class T>
struct Vector {
    Vector(T* pointer, int n, int increment)
        : first(increment < 0 ? pointer + static_cast<std::ptrdiff_t>(1 - n) * increment : pointer),
          step(increment) {}
    T& operator[](std::ptrdiff_t i) const { return first[i * step]; }
    T* first;
    std::ptrdiff_t step;
};

template <class T>
void clear(T* matrix, Shape shape, int leading) {
    for (int column = 0; column < shape.columns; ++column)
        std::fill_n(matrix + static_cast<std::size_t>(column) * leading, shape.rows, T{});
}

// Clears only the triangle that `uplo` names.
template <class T>
void clear_triangle(cublasFillMode_t uplo, int n, T* matrix, int leading) {
    for (int column = 0; column < n; ++column) {
        const int begin = uplo == CUBLAS_FILL_MODE_LOWER ? column : 0;
        const int end = uplo == CUBLAS_FILL_MODE_LOWER ? n : column + 1;
        std::fill(matrix + static_cast<std::size_t>(column) * leading + begin,
                  matrix + static_cast<std::size_t>(column) * leading + end, T{});
    }
}

}  // namespace cuda_on_cpu::blas
