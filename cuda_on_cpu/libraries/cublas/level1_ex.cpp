// The functions of level 1 whose types are arguments. All of them compute with complex numbers in
// double precision, which gives the same for real numbers.
#include <cmath>
#include <cstring>

#include "elements.hpp"

namespace cuda_on_cpu::blas {
namespace {

using Number = std::complex<double>;

bool is_float(cudaDataType type) {
    return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F || type == CUDA_R_64F ||
           type == CUDA_C_32F || type == CUDA_C_64F;
}

// A vector in memory. With a negative increment the first element has the highest address.
struct Elements {
    void* pointer;
    cudaDataType type;
    int n, increment;
    std::size_t place(int i) const {
        const long long first = increment < 0 ? static_cast<long long>(1 - n) * increment : 0;
        return static_cast<std::size_t>(first + static_cast<long long>(i) * increment);
    }
    Number operator[](int i) const { return load<Number>(type, pointer, place(i)); }
    void set(int i, Number value) const { store(type, pointer, place(i), value); }
};

void check_type(Call& call, const char* sentence, cudaDataType type) {
    call.require(is_float(type), CUBLAS_STATUS_NOT_SUPPORTED, sentence);
}

Elements vector(Call& call, bool second, int n, const void* pointer, cudaDataType type, int increment,
                bool written) {
    call.size("n", n).increment(second ? "incy" : "incx", increment);
    check_type(call,
               second ? "yType is no type of real or complex floating-point numbers"
                      : "xType is no type of real or complex floating-point numbers",
               type);
    const char* const name = second ? "y" : "x";
    if (n > 0) call.given(name, pointer);
    const int size = static_cast<int>(size_of(type));
    const Shape shape{size, n};
    const int pitch = size * std::abs(increment);
    auto* const bytes = static_cast<char*>(const_cast<void*>(pointer));
    if (written)
        call.writes(name, bytes, shape, pitch);
    else
        call.reads(name, static_cast<const char*>(bytes), shape, pitch);
    return {const_cast<void*>(pointer), type, n, increment};
}

// alpha, in host or in device memory.
std::function<Number()> factor(Call& call, const void* alpha, cudaDataType type) {
    check_type(call, "alphaType is no type of real or complex floating-point numbers", type);
    call.given("alpha", alpha);
    if (!call.ok()) return {};
    const int size = static_cast<int>(size_of(type));
    if (call.on_device()) {
        call.reads("alpha", static_cast<const char*>(alpha), Shape{size, 1}, size);
        return [=] { return load<Number>(type, alpha, 0); };
    }
    call.expect_host("alpha", alpha);
    if (!call.ok()) return {};
    return [value = load<Number>(type, alpha, 0)] { return value; };
}

void take_result(Call& call, void* result, cudaDataType type) {
    check_type(call, "resultType is no type of real or complex floating-point numbers", type);
    if (call.ok()) call.result("result", static_cast<char*>(result), static_cast<int>(size_of(type)));
}

cublasStatus_t dot(Call call, int n, const void* x, cudaDataType x_type, int incx, const void* y,
                   cudaDataType y_type, int incy, void* result, cudaDataType result_type, bool conjugates) {
    const Elements a = vector(call, false, n, x, x_type, incx, false);
    const Elements b = vector(call, true, n, y, y_type, incy, false);
    take_result(call, result, result_type);
    return call.run([=] {
        Number sum;
        for (int i = 0; i < n; ++i)
            sum += (conjugates ? std::conj(a[i]) : a[i]) * b[i];
        store(result_type, result, 0, sum);
    });
}

// Values of the elements are compared as |real| + |imaginary|. The index counts from 1; that of no
// element is 0.
template <class Better>
cublasStatus_t index_of(Call call, int n, const void* x, cudaDataType x_type, int incx, int* result,
                        Better better) {
    const Elements a = vector(call, false, n, x, x_type, incx, false);
    call.result("result", result);
    return call.run([=] {
        int best = 0;
        double value = 0;
        for (int i = 0; i < n && incx > 0; ++i) {
            const Number number = a[i];
            const double size = std::abs(number.real()) + std::abs(number.imag());
            if (best != 0 && !better(size, value)) continue;
            best = i + 1;
            value = size;
        }
        *result = best;
    });
}

}  // namespace
}  // namespace cuda_on_cpu::blas

using namespace cuda_on_cpu::blas;

cublasStatus_t cublasAxpyEx(cublasHandle_t handle, int n, const void* alpha, cudaDataType alpha_type,
                            const void* x, cudaDataType x_type, int incx, void* y, cudaDataType y_type,
                            int incy, cudaDataType) {
    Call call(handle, __func__);
    const Elements from = vector(call, false, n, x, x_type, incx, false);
    const Elements to = vector(call, true, n, y, y_type, incy, true);
    const auto a = factor(call, alpha, alpha_type);
    return call.run([=] {
        for (int i = 0; i < n; ++i)
            to.set(i, a() * from[i] + to[i]);
    });
}
cublasStatus_t cublasScalEx(cublasHandle_t handle, int n, const void* alpha, cudaDataType alpha_type, void* x,
                            cudaDataType x_type, int incx, cudaDataType) {
    Call call(handle, __func__);
    const Elements to = vector(call, false, n, x, x_type, incx, true);
    const auto a = factor(call, alpha, alpha_type);
    return call.run([=] {
        for (int i = 0; i < n; ++i)
            to.set(i, a() * to[i]);
    });
}
cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                           const void* y, cudaDataType y_type, int incy, void* result,
                           cudaDataType result_type, cudaDataType) {
    return dot({handle, __func__}, n, x, x_type, incx, y, y_type, incy, result, result_type, false);
}
cublasStatus_t cublasDotcEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            const void* y, cudaDataType y_type, int incy, void* result,
                            cudaDataType result_type, cudaDataType) {
    return dot({handle, __func__}, n, x, x_type, incx, y, y_type, incy, result, result_type, true);
}
cublasStatus_t cublasNrm2Ex(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            void* result, cudaDataType result_type, cudaDataType) {
    Call call(handle, __func__);
    const Elements a = vector(call, false, n, x, x_type, incx, false);
    take_result(call, result, result_type);
    return call.run([=] {
        // Scaled by the largest element, so that no square overflows.
        double largest = 0;
        for (int i = 0; i < n; ++i)
            largest = std::max(largest, std::abs(a[i]));
        double sum = 0;
        for (int i = 0; i < n && largest > 0; ++i)
            sum += std::norm(a[i] / largest);
        store(result_type, result, 0, Number(largest * std::sqrt(sum)));
    });
}
cublasStatus_t cublasAsumEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            void* result, cudaDataType result_type, cudaDataType) {
    Call call(handle, __func__);
    const Elements a = vector(call, false, n, x, x_type, incx, false);
    take_result(call, result, result_type);
    return call.run([=] {
        double sum = 0;
        for (int i = 0; i < n; ++i)
            sum += std::abs(a[i].real()) + std::abs(a[i].imag());
        store(result_type, result, 0, Number(sum));
    });
}
cublasStatus_t cublasCopyEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                            void* y, cudaDataType y_type, int incy) {
    Call call(handle, __func__);
    const Elements from = vector(call, false, n, x, x_type, incx, false);
    const Elements to = vector(call, true, n, y, y_type, incy, true);
    return call.run([=] {
        for (int i = 0; i < n; ++i)
            to.set(i, from[i]);
    });
}
cublasStatus_t cublasSwapEx(cublasHandle_t handle, int n, void* x, cudaDataType x_type, int incx, void* y,
                            cudaDataType y_type, int incy) {
    Call call(handle, __func__);
    const Elements a = vector(call, false, n, x, x_type, incx, true);
    const Elements b = vector(call, true, n, y, y_type, incy, true);
    return call.run([=] {
        for (int i = 0; i < n; ++i) {
            const Number value = a[i];
            a.set(i, b[i]);
            b.set(i, value);
        }
    });
}
cublasStatus_t cublasIamaxEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                             int* result) {
    return index_of({handle, __func__}, n, x, x_type, incx, result, [](double a, double b) { return a > b; });
}
cublasStatus_t cublasIaminEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx,
                             int* result) {
    return index_of({handle, __func__}, n, x, x_type, incx, result, [](double a, double b) { return a < b; });
}
