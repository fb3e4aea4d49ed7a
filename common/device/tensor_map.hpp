// Makes the CUtensorMap through which the tensor memory accelerator sees a matrix.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "common/check/check.hpp"
#include "common/device/device_view.hpp"

namespace course {

// What an element is, as far as copying it goes.
template <class Element>
constexpr CUtensorMapDataType tensor_map_type() {
    if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    } else if constexpr (std::is_same_v<Element, __half>) {
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    } else if constexpr (std::is_same_v<Element, float>) {
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    } else if constexpr (std::is_same_v<Element, std::int32_t>) {
        return CU_TENSOR_MAP_DATA_TYPE_INT32;
    } else {
        static_assert(sizeof(Element) == 1);  // of any kind
        return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    }
}

// Why the accelerator cannot reach the matrix, or "": rows must begin at multiples of 16 bytes, and
// extents fit into an int with room to spare.
template <class T>
std::string why_no_tensor_map(const DeviceMatrix<T>& matrix) {
    const std::size_t address = reinterpret_cast<std::uintptr_t>(matrix.data()) % 16;
    const std::size_t pitch = matrix.leading_dimension() * sizeof(T);
    if (address != 0 || pitch % 16 != 0)
        return "has an address % 16 of " + std::to_string(address) + " and rows that are " +
               std::to_string(pitch) + " bytes apart; expected 0 and a multiple of 16";
    if (pitch >= std::size_t{1} << 40)
        return "has rows that are " + std::to_string(pitch) + " bytes apart; expected less than 2^40";
    constexpr std::size_t kMost = (std::size_t{1} << 31) - 1024;
    if (matrix.rows() > kMost || matrix.cols() > kMost)
        return "is " + std::to_string(matrix.rows()) + " x " + std::to_string(matrix.cols()) +
               "; expected at most " + std::to_string(kMost) + " each way";
    return "";
}

// The matrix in boxes of `box_rows` x `box_cols` elements, with rows of 128 bytes in shared memory
// (box_cols * sizeof(T) = 128), swizzled. Neither extent may be 0. Throws std::invalid_argument
// with why_no_tensor_map's reason, or when the box is not one the accelerator has (1 to 256 rows);
// CudaError when the driver refuses.
template <class T>
CUtensorMap make_tensor_map(const DeviceMatrix<T>& matrix, unsigned box_rows, unsigned box_cols) {
    using Element = std::remove_const_t<T>;
    const std::string reason = why_no_tensor_map(matrix);
    if (!reason.empty()) throw std::invalid_argument("make_tensor_map: the matrix " + reason);
    if (box_rows < 1 || box_rows > 256 || box_cols * sizeof(T) != 128)
        throw std::invalid_argument("make_tensor_map: box of " + std::to_string(box_rows) + " x " +
                                    std::to_string(box_cols) + "; expected 1 to 256 rows of 128 bytes");

    // From the driver that is loaded anyway: the program need not be linked with it.
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    CUDA_CHECK(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess)
        throw CudaError(cudaErrorNotSupported, "the driver has no cuTensorMapEncodeTiled (CUDA 12.0)");
    const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);

    CUtensorMap map{};
    const cuuint64_t extents[] = {matrix.cols(), matrix.rows()};
    const cuuint64_t pitch[] = {matrix.leading_dimension() * sizeof(T)};
    const cuuint32_t box[] = {box_cols, box_rows};
    const cuuint32_t steps[] = {1, 1};
    const CUresult result =
        encode(&map, tensor_map_type<Element>(), 2, const_cast<Element*>(matrix.data()), extents, pitch, box,
               steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw CudaError(cudaErrorInvalidValue,
                        "cuTensorMapEncodeTiled failed with driver error " + std::to_string(result));
    return map;
}

}  // namespace course
