// Day 48, beyond: the host code of fused_wgmma.cuh, and the conditions under which it runs.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/check/check.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/tf32_wgmma.cuh"
#include "fused_wgmma.cuh"
#include "list_best_wgmma.hpp"

namespace day48 {
namespace {

std::size_t pitch_of(std::size_t m) {
    return course::ceil_div<std::size_t>(m, 4) * 4;
}

course::DeviceMatrix<const float> transposed_queries(const course::Operands& operands, const float* queries) {
    const std::size_t pitch = pitch_of(operands.m());
    return {course::DeviceSpan<const float>::from_device_pointer(queries, pitch * operands.k()), operands.k(),
            operands.m(), pitch};
}

}  // namespace

std::string why_no_wgmma(const TopKMatmul& matmul) {
    const course::Operands& operands = matmul.operands;
    if (matmul.metric == course::Metric::kDifferences) return "takes metrics that are products";
    if (operands.count() != 1 || !operands.a.pointers.empty() || !operands.b.pointers.empty())
        return "takes one product";
    if (operands.op_b != course::Op::kTranspose) return "takes points that are rows of B";
    // The error of sums of a few terms is larger than FP32's (common/tile/tf32_split.cuh).
    if (operands.k() < 16) return "takes vectors of 16 numbers or more";
    for (const auto& matrix : {operands.b.first, transposed_queries(operands, nullptr)}) {
        if (const std::string reason = course::why_no_tensor_map(matrix); !reason.empty()) return reason;
    }
    return course::why_no_hopper();
}

std::size_t transposed_words(std::size_t m, std::size_t d) {
    return pitch_of(m) * d / 2 + 1;
}

void launch_list_best_wgmma(const TopKMatmul& matmul, const course::Distance& distance, float sign,
                            const RowLists& lists, std::uint64_t* transposed, cudaStream_t stream) {
    const course::Operands& operands = matmul.operands;
    const std::size_t pitch = pitch_of(operands.m());
    // Words are 8-byte aligned, but TMA needs 16 bytes.
    auto* const queries =
        reinterpret_cast<float*>(transposed + reinterpret_cast<std::uintptr_t>(transposed) / 8 % 2);
    launch_transpose_queries(operands, queries, pitch, stream);
    CUDA_CHECK_LAUNCH();
    const auto matrix = transposed_queries(operands, queries);
    const tf32::Maps maps{course::make_tensor_map(operands.b.first, tf32::BM, tf32::BK),
                          course::make_tensor_map(matrix, tf32::BK, tf32::BOX)};
    launch_wgmma(maps, operands, distance, sign, lists, stream);
}

}  // namespace day48
