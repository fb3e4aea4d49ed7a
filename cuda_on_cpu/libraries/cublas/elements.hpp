// Matrices whose type is known only at run time: converted to a type that BLAS computes with, and
// back, rounded once.
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "call.hpp"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_fp8.h"
#include "host_blas.hpp"

namespace cuda_on_cpu::blas {

// In bytes; 0 if no function here supports the type.
inline std::size_t size_of(cudaDataType type) {
    switch (type) {
        case CUDA_R_8I:
        case CUDA_R_8F_E4M3:
        case CUDA_R_8F_E5M2:
            return 1;
        case CUDA_R_16F:
        case CUDA_R_16BF:
        case CUDA_C_8I:
            return 2;
        case CUDA_R_32F:
        case CUDA_R_32I:
            return 4;
        case CUDA_R_64F:
        case CUDA_C_32F:
            return 8;
        case CUDA_C_64F:
            return 16;
        default:
            return 0;
    }
}

inline bool is_complex(cudaDataType type) {
    return type == CUDA_C_8I || type == CUDA_C_32F || type == CUDA_C_64F;
}

template <class T, class Stored>
T load_as(const void* memory, std::size_t i) {
    return T(static_cast<Real<T>>(static_cast<const Stored*>(memory)[i]));
}

template <class T, class Stored>
T load_complex_as(const void* memory, std::size_t i) {
    const Stored* pair = static_cast<const Stored*>(memory) + 2 * i;
    if constexpr (kComplex<T>) {
        return T(static_cast<Real<T>>(pair[0]), static_cast<Real<T>>(pair[1]));
    } else {
        return T(pair[0]);
    }
}

// Loads element i as a T.
template <class T>
T load(cudaDataType type, const void* memory, std::size_t i) {
    switch (type) {
        case CUDA_R_8I:
            return load_as<T, signed char>(memory, i);
        case CUDA_R_8F_E4M3:
            return T(static_cast<float>(static_cast<const __nv_fp8_e4m3*>(memory)[i]));
        case CUDA_R_8F_E5M2:
            return T(static_cast<float>(static_cast<const __nv_fp8_e5m2*>(memory)[i]));
        case CUDA_R_16F:
            return T(static_cast<float>(static_cast<const __half*>(memory)[i]));
        case CUDA_R_16BF:
            return T(static_cast<float>(static_cast<const __nv_bfloat16*>(memory)[i]));
        case CUDA_R_32I:
            return load_as<T, int>(memory, i);
        case CUDA_R_64F:
            return load_as<T, double>(memory, i);
        case CUDA_C_8I:
            return load_complex_as<T, signed char>(memory, i);
        case CUDA_C_32F:
            return load_complex_as<T, float>(memory, i);
        case CUDA_C_64F:
            return load_complex_as<T, double>(memory, i);
        default:
            return load_as<T, float>(memory, i);
    }
}

// Rounds to the nearest integer and saturates.
template <class Integer>
Integer saturate(double value) {
    constexpr double kLeast = std::numeric_limits<Integer>::min(),
                     kMost = std::numeric_limits<Integer>::max();
    return static_cast<Integer>(std::clamp(std::nearbyint(value), kLeast, kMost));
}

template <class T>
void store(cudaDataType type, void* memory, std::size_t i, T value) {
    const Real<T> real = std::real(value);
    switch (type) {
        case CUDA_R_8I:
            static_cast<signed char*>(memory)[i] = saturate<signed char>(real);
            break;
        case CUDA_R_8F_E4M3:
            static_cast<__nv_fp8_e4m3*>(memory)[i] = __nv_fp8_e4m3(static_cast<float>(real));
            break;
        case CUDA_R_8F_E5M2:
            static_cast<__nv_fp8_e5m2*>(memory)[i] = __nv_fp8_e5m2(static_cast<float>(real));
            break;
        case CUDA_R_16F:
            static_cast<__half*>(memory)[i] = __half(static_cast<float>(real));
            break;
        case CUDA_R_16BF:
            static_cast<__nv_bfloat16*>(memory)[i] = __nv_bfloat16(static_cast<float>(real));
            break;
        case CUDA_R_32I:
            static_cast<int*>(memory)[i] = saturate<int>(real);
            break;
        case CUDA_R_64F:
            static_cast<double*>(memory)[i] = real;
            break;
        case CUDA_C_32F:
            static_cast<std::complex<float>*>(memory)[i] = std::complex<float>(std::complex<double>(value));
            break;
        case CUDA_C_64F:
            static_cast<std::complex<double>*>(memory)[i] = std::complex<double>(value);
            break;
        default:
            static_cast<float*>(memory)[i] = static_cast<float>(real);
    }
}

}  // namespace cuda_on_cpu::blas
