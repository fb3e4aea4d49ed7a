// Creates the CUtensorMap that describes a matrix to the tensor memory accelerator (TMA).
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

// The element type; TMA needs only what matters for copying.
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
        static_assert(sizeof(Element) == 1);  // any 1-byte type
        return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    }
}

// Why TMA cannot address the matrix, or "". Rows must be 16-byte aligned, and the extents must fit
// into an int with a margin.
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

// Finds a driver function at run time. The driver is loaded anyway, so the program need not be
// linked with its library.
template <class Function>
Function* driver_function(const char* name) {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess)
        throw CudaError(cudaErrorNotSupported, std::string("the driver has no ") + name + " (CUDA 12.0)");
    return reinterpret_cast<Function*>(entry);
}
// Looked up once, not at each launch.
inline auto* tensor_map_encoder() {
    static auto* const encoder = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
    return encoder;
}
inline auto* im2col_map_encoder() {
    static auto* const encoder =
        driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
    return encoder;
}

// A map of the matrix in boxes of `box_rows` x `box_cols` elements, swizzled, with rows of 128
// bytes in shared memory (box_cols * sizeof(T) = 128). L2 fetches 128 bytes at a time, a row of a
// box, because with 256 it would fetch more than is used where rows are not 128-byte aligned.
// Neither extent may be 0. Throws std::invalid_argument with why_no_tensor_map's reason, or when
// the number of box rows is not in the range of TMA (1 to 256). Throws CudaError when the driver
// returns an error.
template <class T>
CUtensorMap make_tensor_map(const DeviceMatrix<T>& matrix, unsigned box_rows, unsigned box_cols) {
    using Element = std::remove_const_t<T>;
    const std::string reason = why_no_tensor_map(matrix);
    if (!reason.empty()) throw std::invalid_argument("make_tensor_map: the matrix " + reason);
    if (box_rows < 1 || box_rows > 256 || box_cols * sizeof(T) != 128)
        throw std::invalid_argument("make_tensor_map: box of " + std::to_string(box_rows) + " x " +
                                    std::to_string(box_cols) + "; expected 1 to 256 rows of 128 bytes");

    CUtensorMap map{};
    const cuuint64_t extents[] = {matrix.cols(), matrix.rows()};
    const cuuint64_t pitch[] = {matrix.leading_dimension() * sizeof(T)};
    const cuuint32_t box[] = {box_cols, box_rows};
    const cuuint32_t steps[] = {1, 1};
    const CUresult result = tensor_map_encoder()(
        &map, tensor_map_type<Element>(), 2, const_cast<Element*>(matrix.data()), extents, pitch, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw CudaError(cudaErrorInvalidValue,
                        "cuTensorMapEncodeTiled failed with driver error " + std::to_string(result));
    return map;
}

namespace hopper {

// How TMA sees the matrices of a product, for a kernel.
struct Maps {
    CUtensorMap a;
    CUtensorMap b;
    CUtensorMap c;  // for versions that store through TMA
};

}  // namespace hopper

// `matrices[0]` x `matrices[1]` matrices of `rows` x `cols` elements: element (i, j, row, col) is
// at data[i pitches[0] + j pitches[1] + row leading_dimension + col]. Boxes as above, each within
// one matrix. L2 fetches 256 bytes at a time, which is a row of 128 elements in attention, two
// boxes wide. No extent may be 0, and all pitches are multiples of 16 bytes.
template <class T>
CUtensorMap make_tensor_map(const T* data, std::size_t rows, std::size_t cols, std::size_t leading_dimension,
                            const std::size_t (&matrices)[2], const std::size_t (&pitches)[2],
                            unsigned box_rows) {
    CUtensorMap map{};
    // The pitch of an extent of 1 is never used, but it must be valid.
    const auto bytes = [](std::size_t pitch, std::size_t count) {
        return static_cast<cuuint64_t>(count > 1 ? pitch * sizeof(T) : 16);
    };
    const cuuint64_t extents[] = {cols, rows, matrices[0], matrices[1]};
    const cuuint64_t all_pitches[] = {bytes(leading_dimension, rows), bytes(pitches[0], matrices[0]),
                                      bytes(pitches[1], matrices[1])};
    const cuuint32_t box[] = {128 / sizeof(T), box_rows, 1, 1};
    const cuuint32_t steps[] = {1, 1, 1, 1};
    const CUresult result =
        tensor_map_encoder()(&map, tensor_map_type<T>(), 4, const_cast<T*>(data), extents, all_pitches, box,
                             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw CudaError(cudaErrorInvalidValue,
                        "cuTensorMapEncodeTiled failed with driver error " + std::to_string(result));
    return map;
}

// Images of NHWC, as convolutions with a filter of `filter_rows` x `filter_columns` read them.
struct ImageWindow {
    int images;
    int rows;
    int columns;
    int channels;
    int filter_rows;
    int filter_columns;
    int padding;  // rows and columns of zeros on each side of an image
    int stride;
};

// A map for tma_load_im2col: columns of `pixels` pixels, with 128 bytes of channels for each
// pixel, swizzled. The bounding box contains the pixels under the first element of the filter at
// all positions of the filter.
template <class T>
CUtensorMap make_im2col_map(const T* images, const ImageWindow& window, unsigned pixels) {
    const auto positive = [](int extent) { return static_cast<cuuint64_t>(extent); };
    const cuuint64_t extents[] = {positive(window.channels), positive(window.columns), positive(window.rows),
                                  positive(window.images)};
    const cuuint64_t of_pixel = extents[0] * sizeof(T);
    const cuuint64_t of_row = of_pixel * extents[1];
    const cuuint64_t pitches[] = {of_pixel, of_row, of_row * extents[2]};
    const int lower[] = {-window.padding, -window.padding};
    const int upper[] = {window.padding - (window.filter_columns - 1),
                         window.padding - (window.filter_rows - 1)};
    const auto stride = static_cast<cuuint32_t>(window.stride);
    const cuuint32_t steps[] = {1, stride, stride, 1};
    CUtensorMap map{};
    const CUresult result = im2col_map_encoder()(
        &map, tensor_map_type<T>(), 4, const_cast<T*>(images), extents, pitches, lower, upper,
        128 / sizeof(T), pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw CudaError(cudaErrorInvalidValue,
                        "cuTensorMapEncodeIm2col failed with driver error " + std::to_string(result));
    return map;
}

}  // namespace course
