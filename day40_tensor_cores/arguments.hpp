// What the files of this day share on the host: checks of arguments.
#pragma once

#include <cstddef>
#include <type_traits>

#include "common/check/require.hpp"
#include "common/device/device_view.hpp"
#include "tensor_cores.hpp"

namespace day40 {

// Rows and columns are counted in int, with room for a tile beyond the last.
inline constexpr std::size_t kMostExtent = (std::size_t{1} << 31) - 1024;

// `topic` begins the messages.
template <class A, class B, class C>
void check_extents_and_overlap(const char* topic, const A& a, const B& b, const C& c) {
    for (const std::size_t extent : {c.rows(), c.cols(), a.cols()})
        course::require(extent <= kMostExtent, topic, ": M, N or K is ", extent, "; expected at most ",
                        kMostExtent);
    course::require(!overlap(c, a), topic, ": C overlaps A; expected no common element");
    course::require(!overlap(c, b), topic, ": C overlaps B; expected no common element");
}

// The multiplication as kernels see it: alpha = 0 leaves nothing of A and B, so K is 0; and where K is 0, so is alpha. Throws
// std::invalid_argument when shapes do not match or C overlaps A or B.
template <class T>
Gemm<T> checked(const Gemm<T>& gemm) {
    const auto& [a, b, c, alpha, beta] = gemm;
    course::require(a.rows() == c.rows() && a.cols() == b.rows() && b.cols() == c.cols(),
                    "tensor_cores: A is ", a, ", B is ", b, ", C is ", c,
                    "; expected A: M x K, B: K x N, C: M x N");
    check_extents_and_overlap("tensor_cores", a, b, c);
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
