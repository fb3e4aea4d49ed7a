// Code that the launchers in FP32 and in BF16 share: the work of a problem, and checks.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "common/bench/work.hpp"
#include "fused_matmul.hpp"

namespace day45 {

template <class T>
course::Work work(const Shape& shape) {
    const auto count = static_cast<double>(shape.count);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = count * (sizeof(T) * (m * k + k * n) + sizeof(float) * m * n),
            .written = count * sizeof(float) * m * n,
            .flops = 2 * count * m * n * k,
            .arithmetic = std::is_same_v<T, float> ? course::Arithmetic::kFp32 : course::Arithmetic::kOther};
}

// Checks the arguments. False: C has no elements.
template <class T>
bool is_worth_a_launch(const BatchedMatmulOf<T>& matmul) {
    course::check_operands(matmul.operands, "batched matmul");
    course::check_output(matmul.operands, matmul.c, "batched matmul");
    const auto& c = matmul.c.first;
    return c.rows() != 0 && c.cols() != 0 && matmul.c.count != 0;
}

}  // namespace day45
