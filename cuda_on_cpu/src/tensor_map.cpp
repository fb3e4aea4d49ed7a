#include "tensor_map.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::uint64_t kSignature = 0x70616d726f736e74;
constexpr std::size_t kPiece = 16;  // bytes: what is swizzled, and stored, as a whole
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap));

unsigned size_of(CUtensorMapDataType type) {
    switch (type) {
        case CU_TENSOR_MAP_DATA_TYPE_UINT8:
            return 1;
        case CU_TENSOR_MAP_DATA_TYPE_UINT16:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
        case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
            return 2;
        case CU_TENSOR_MAP_DATA_TYPE_UINT32:
        case CU_TENSOR_MAP_DATA_TYPE_INT32:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
            return 4;
        case CU_TENSOR_MAP_DATA_TYPE_UINT64:
        case CU_TENSOR_MAP_DATA_TYPE_INT64:
        case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
            return 8;
    }
    return 0;
}

CUresult refuse(CUresult result, const std::string& why) {
    std::fprintf(stderr, "cuda_on_cpu: cuTensorMapEncodeTiled: %s\n", why.c_str());
    return result;
}

std::string text(std::uint64_t number) {
    return std::to_string(number);
}

}  // namespace

const TensorMap* TensorMap::of(const CUtensorMap* map) {
    const auto* known = reinterpret_cast<const TensorMap*>(map);
    return map != nullptr && known->signature == kSignature ? known : nullptr;
}

TensorMap TensorMap::matrix(int i, int j) const {
    TensorMap one = *this;
    one.rank = 2;
    const bool exists = i >= 0 && static_cast<std::uint64_t>(i) < matrices[0] && j >= 0 &&
                        static_cast<std::uint64_t>(j) < matrices[1];
    if (exists) {
        one.address +=
            static_cast<std::size_t>(i) * matrix_pitch[0] + static_cast<std::size_t>(j) * matrix_pitch[1];
    } else {
        one.dims[1] = 0;
    }
    return one;
}

std::vector<TensorMap::Row> TensorMap::rows_within(int column, int row) const {
    const auto first = [](int at) { return static_cast<std::uint64_t>(std::max(at, 0)); };
    const auto end = [](int at, std::uint32_t extent, std::uint64_t dim) {
        return static_cast<std::uint64_t>(
            std::clamp(std::int64_t{at} + extent, std::int64_t{0}, static_cast<std::int64_t>(dim)));
    };
    std::vector<Row> rows;
    const std::uint64_t columns_end = end(column, box[0], dims[0]);
    if (first(column) >= columns_end) return rows;
    for (std::uint64_t r = first(row); r < end(row, box[1], dims[1]); ++r) {
        rows.push_back({address + r * pitch + first(column) * element_size,
                        (columns_end - first(column)) * element_size});
    }
    return rows;
}

bool TensorMap::box_accessible(int column, int row) const {
    return std::ranges::all_of(rows_within(column, row),
                               [](const Row& part) { return device_accessible(part.begin, part.bytes); });
}

void TensorMap::load(int column, int row, void* shared) const {
    const unsigned char outside = fill_with_nan ? kPoison : 0;
    std::vector<unsigned char> line(box_row_bytes());
    for (std::uint32_t r = 0; r < box[1]; ++r) {
        std::fill(line.begin(), line.end(), outside);
        const std::int64_t from_row = std::int64_t{row} + r;
        if (from_row >= 0 && from_row < static_cast<std::int64_t>(dims[1])) {
            const std::int64_t begin = std::max<std::int64_t>(column, 0);
            const std::int64_t end =
                std::min(std::int64_t{column} + box[0], static_cast<std::int64_t>(dims[0]));
            if (begin < end) {
                std::memcpy(line.data() + static_cast<std::size_t>(begin - column) * element_size,
                            address + static_cast<std::size_t>(from_row) * pitch +
                                static_cast<std::size_t>(begin) * element_size,
                            static_cast<std::size_t>(end - begin) * element_size);
            }
        }
        const auto place = reinterpret_cast<std::uintptr_t>(shared) + r * line.size();
        for (std::size_t i = 0; i < line.size(); i += kPiece)
            std::memcpy(reinterpret_cast<void*>(swizzled(place + i, span_of(swizzle))), line.data() + i,
                        kPiece);
    }
}

void TensorMap::store(int column, int row, const std::vector<unsigned char>& data, const void* shared) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(shared);
    for (std::uint32_t r = 0; r < box[1]; ++r) {
        const std::int64_t to_row = std::int64_t{row} + r;
        if (to_row < 0 || to_row >= static_cast<std::int64_t>(dims[1])) continue;
        for (std::size_t i = 0; i < box_row_bytes(); i += kPiece) {
            const std::int64_t to_column = column + static_cast<std::int64_t>(i / element_size);
            if (to_column < 0 || to_column >= static_cast<std::int64_t>(dims[0])) continue;
            std::memcpy(address + static_cast<std::size_t>(to_row) * pitch +
                            static_cast<std::size_t>(to_column) * element_size,
                        data.data() + (swizzled(begin + r * box_row_bytes() + i, span_of(swizzle)) - begin),
                        kPiece);
        }
    }
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion /*l2_promotion*/,
                                CUtensorMapFloatOOBfill fill) {
    constexpr auto kInvalid = CUDA_ERROR_INVALID_VALUE;
    if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % 64 != 0)
        return refuse(kInvalid, "the map must be at a multiple of 64 bytes");
    const unsigned element_size = size_of(type);
    if (element_size == 0) return refuse(kInvalid, "data type " + text(type));
    if (rank < 1 || rank > 5) return refuse(kInvalid, "rank " + text(rank) + "; expected 1 to 5");
    if (address == nullptr || reinterpret_cast<std::uintptr_t>(address) % kPiece != 0)
        return refuse(kInvalid, "the matrix must begin at a multiple of 16 bytes");
    for (cuuint32_t i = 0; i < rank; ++i) {
        if (dims[i] < 1 || dims[i] > std::uint64_t{1} << 32)
            return refuse(kInvalid, "extent " + text(i) + " is " + text(dims[i]) + "; expected 1 to 2^32");
        if (box[i] < 1 || box[i] > 256)
            return refuse(kInvalid,
                          "the box's extent " + text(i) + " is " + text(box[i]) + "; expected 1 to 256");
        if (element_strides[i] < 1 || element_strides[i] > 8)
            return refuse(kInvalid, "element stride " + text(i) + " is " + text(element_strides[i]) +
                                        "; expected 1 to 8");
        if (i > 0 && (strides[i - 1] % kPiece != 0 || strides[i - 1] >= std::uint64_t{1} << 40))
            return refuse(kInvalid, "stride " + text(i - 1) + " is " + text(strides[i - 1]) +
                                        " bytes; expected a multiple of 16 below 2^40");
    }
    const std::size_t row_bytes = std::size_t{box[0]} * element_size;
    if (row_bytes % kPiece != 0)
        return refuse(kInvalid,
                      "the box's rows are " + text(row_bytes) + " bytes; expected a multiple of 16");
    if (swizzle < CU_TENSOR_MAP_SWIZZLE_NONE || swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return refuse(CUDA_ERROR_NOT_SUPPORTED, "swizzle " + text(swizzle) + " is not modelled");
    if (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row_bytes > span_of(swizzle))
        return refuse(kInvalid, "the box's rows are " + text(row_bytes) +
                                    " bytes; this swizzle takes at most " + text(span_of(swizzle)));
    const bool of_matrices = rank == 4 && box[2] == 1 && box[3] == 1;
    if ((rank > 2 && !of_matrices) || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        (rank >= 2 && element_strides[1] != 1) ||
        (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row_bytes < span_of(swizzle)))
        return refuse(CUDA_ERROR_NOT_SUPPORTED,
                      "more than two extents (but for four, with boxes of 1 along the last two), "
                      "interleaving, element strides, and swizzled boxes narrower than the "
                      "swizzle's span are not modelled");
    const TensorMap known{.signature = kSignature,
                          .address = static_cast<char*>(address),
                          .dims = {dims[0], rank >= 2 ? dims[1] : 1},
                          .pitch = rank >= 2 ? strides[0] : 0,
                          .matrices = {of_matrices ? dims[2] : 1, of_matrices ? dims[3] : 1},
                          .matrix_pitch = {of_matrices ? strides[1] : 0, of_matrices ? strides[2] : 0},
                          .box = {box[0], rank >= 2 ? box[1] : 1},
                          .element_size = element_size,
                          .rank = rank,
                          .swizzle = swizzle,
                          .fill_with_nan = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE};
    *map = {};
    std::memcpy(map, &known, sizeof known);
    return CUDA_SUCCESS;
}
