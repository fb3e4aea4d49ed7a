// What the files of this day share on the host: checks of arguments.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "common/device/device_view.hpp"
#include "tensor_cores.hpp"

namespace day40 {

inline void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument(message);
}

// Rows and columns are counted in int, with room for a tile beyond the last.
inline constexpr std::size_t kMostExtent = (std::size_t{1} << 31) - 1024;

// The multiplication as kernels see it: alpha = 0 leaves nothing of A and B, so K is 0; and where K is 0, so is alpha. Throws
// std::invalid_argument when shapes do not match or C overlaps A or B.
template <class T>
Gemm<T> checked(const Gemm<T>& gemm) {
    const auto& [a, b, c, alpha, beta] = gemm;
    const auto shape = [](const auto& m) {
        return std::to_string(m.rows()) + " x " + std::to_string(m.cols());
    };
    // Messages are made when they are needed: a small product takes no longer than a few strings.
    if (a.rows() != c.rows() || a.cols() != b.rows() || b.cols() != c.cols())
        throw std::invalid_argument("tensor_cores: A is " + shape(a) + ", B is " + shape(b) + ", C is " +
                                    shape(c) + "; expected A: M x K, B: K x N, C: M x N");
    for (const std::size_t extent : {c.rows(), c.cols(), a.cols()})
        if (extent > kMostExtent)
            throw std::invalid_argument("tensor_cores: M, N or K is " + std::to_string(extent) +
                                        "; expected at most " + std::to_string(kMostExtent));
    if (overlap(c, a)) throw std::invalid_argument("tensor_cores: C overlaps A; expected no common element");
    if (overlap(c, b)) throw std::invalid_argument("tensor_cores: C overlaps B; expected no common element");
    Gemm<T> result = gemm;
    if (alpha == 0 || a.cols() == 0) {  // no products: nothing times an infinite alpha is nothing
        const auto nothing = [](const T* data) {
            return course::DeviceSpan<const T>::from_device_pointer(data, 0);
        };
        result.a = course::DeviceMatrix<const T>(nothing(a.data()), a.rows(), 0);
        result.b = course::DeviceMatrix<const T>(nothing(b.data()), 0, b.cols());
        result.alpha = 0;
    }
    return result;
}

// What any version must do at least.
inline course::Work work_of(const Shape& shape) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = 2 * (m * k + k * n) + 4 * m * n,
            .written = 4 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = course::Arithmetic::kOther};
}

template <class T>
const KernelFor<T>& kernel_of(const Version& version) {
    if constexpr (std::is_same_v<T, __half>) {
        return version.launcher.half;
    } else {
        return version.launcher.bfloat16;
    }
}

}  // namespace day40
