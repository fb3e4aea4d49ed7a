// The functions for S, D, C and Z: each calls the template of the same name with a Call made from
// the handle and the function's name.
#include "batched.hpp"
#include "level1.hpp"
#include "level2.hpp"
#include "level3.hpp"

namespace cuda_on_cpu::blas {
namespace {

// cuBLAS's complex numbers are plain pairs; std::complex has the same layout, and also arithmetic.
template <class T>
T native(T argument) {
    return argument;
}
std::complex<float>* native(cuComplex* pointer) {
    return reinterpret_cast<std::complex<float>*>(pointer);
}
const std::complex<float>* native(const cuComplex* pointer) {
    return reinterpret_cast<const std::complex<float>*>(pointer);
}
std::complex<double>* native(cuDoubleComplex* pointer) {
    return reinterpret_cast<std::complex<double>*>(pointer);
}
const std::complex<double>* native(const cuDoubleComplex* pointer) {
    return reinterpret_cast<const std::complex<double>*>(pointer);
}
std::complex<float>* const* native(cuComplex* const* pointers) {
    return reinterpret_cast<std::complex<float>* const*>(pointers);
}
const std::complex<float>* const* native(const cuComplex* const* pointers) {
    return reinterpret_cast<const std::complex<float>* const*>(pointers);
}
std::complex<double>* const* native(cuDoubleComplex* const* pointers) {
    return reinterpret_cast<std::complex<double>* const*>(pointers);
}
const std::complex<double>* const* native(const cuDoubleComplex* const* pointers) {
    return reinterpret_cast<const std::complex<double>* const*>(pointers);
}

template <class Function, class... Arguments>
cublasStatus_t invoke(Function function, Call call, Arguments... arguments) {
    return function(std::move(call), native(arguments)...);
}

}  // namespace
}  // namespace cuda_on_cpu::blas

#define CUBLAS_JOIN_(prefix, name) cublas##prefix##name
#define CUBLAS_JOIN(prefix, name) CUBLAS_JOIN_(prefix, name)
#define CUBLAS_LIST(...) __VA_ARGS__
#define CUBLAS_FUNCTION(prefix, name, parameters, arguments)                                            \
    cublasStatus_t CUBLAS_JOIN(prefix, name) parameters {                                               \
        return cuda_on_cpu::blas::invoke(                                                               \
            [](auto&&... all) { return cuda_on_cpu::blas::name(std::forward<decltype(all)>(all)...); }, \
            cuda_on_cpu::blas::Call(handle, __func__), CUBLAS_LIST arguments);                          \
    }
#include "cuda_on_cpu/cublas_each_type.inc"
