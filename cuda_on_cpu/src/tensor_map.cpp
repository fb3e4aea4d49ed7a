#include "tensor_map.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "memory.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::uint64_t kSignature = 0x70616d726f736e74;
constexpr std::size_t kPiece = 16;  // bytes; the unit of swizzling and of stores
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

CUresult refuse(CUresult result, const char* function, const std::string& why) {
    std::fprintf(stderr, "cuda_on_cpu: %s: %s\n", function, why.c_str());
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

TensorMap TensorMap::column_of_pixels(const int (&first)[3], const std::uint16_t (&offset)[2]) const {
    TensorMap one = *this;
    one.rank = 2;
    std::copy(std::begin(first), std::end(first), one.pixels.first);
    std::copy(std::begin(offset), std::end(offset), one.pixels.offset);
    return one;
}

std::vector<char*> TensorMap::row_addresses(int row) const {
    const auto inside = [](std::int64_t at, std::uint64_t extent) {
        return at >= 0 && static_cast<std::uint64_t>(at) < extent;
    };
    std::vector<char*> addresses(box[1], nullptr);
    if (!im2col) {
        std::int64_t at = row;
        for (char*& begin : addresses) {
            if (inside(at, dims[1])) begin = address + static_cast<std::size_t>(at) * pitch;
            ++at;
        }
        return addresses;
    }
    std::int64_t x = pixels.first[0];
    std::int64_t y = pixels.first[1];
    std::int64_t image = pixels.first[2];
    for (char*& begin : addresses) {
        const std::int64_t column = x + pixels.offset[0];
        const std::int64_t line = y + pixels.offset[1];
        if (inside(column, dims[1]) && inside(line, matrices[0]) && inside(image, matrices[1]))
            begin = address + static_cast<std::size_t>(column) * pitch +
                    static_cast<std::size_t>(line) * matrix_pitch[0] +
                    static_cast<std::size_t>(image) * matrix_pitch[1];
        // Goes through the bounding box row by row, then to that of the next image.
        x += pixels.step[0];
        if (x <= last_of_box(0)) continue;
        x = pixels.lower[0];
        y += pixels.step[1];
        if (y <= last_of_box(1)) continue;
        y = pixels.lower[1];
        ++image;
    }
    return addresses;
}

std::vector<TensorMap::Row> TensorMap::rows_within(int column, int row) const {
    std::vector<Row> rows;
    const std::int64_t begin = std::max(column, 0);
    const std::int64_t end = std::min(std::int64_t{column} + box[0], static_cast<std::int64_t>(dims[0]));
    if (begin >= end) return rows;
    for (char* const address_of_row : row_addresses(row)) {
        if (address_of_row != nullptr)
            rows.push_back({address_of_row + static_cast<std::size_t>(begin) * element_size,
                            static_cast<std::size_t>(end - begin) * element_size});
    }
    return rows;
}

bool TensorMap::box_accessible(int column, int row) const {
    return std::ranges::all_of(rows_within(column, row),
                               [](const Row& part) { return device_accessible(part.begin, part.bytes); });
}

void TensorMap::load(int column, int row, void* shared) const {
    const unsigned char outside = fill_with_nan ? kPoison : 0;
    const std::int64_t begin = std::max(column, 0);
    const std::int64_t end = std::min(std::int64_t{column} + box[0], static_cast<std::int64_t>(dims[0]));
    std::vector<unsigned char> line(box_row_bytes());
    auto place = reinterpret_cast<std::uintptr_t>(shared);
    for (const char* const address_of_row : row_addresses(row)) {
        std::fill(line.begin(), line.end(), outside);
        if (address_of_row != nullptr && begin < end)
            std::memcpy(line.data() + static_cast<std::size_t>(begin - column) * element_size,
                        address_of_row + static_cast<std::size_t>(begin) * element_size,
                        static_cast<std::size_t>(end - begin) * element_size);
        for (std::size_t i = 0; i < line.size(); i += kPiece)
            std::memcpy(reinterpret_cast<void*>(swizzled(place + i, span_of(swizzle))), line.data() + i,
                        kPiece);
        place += line.size();
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

namespace {

constexpr auto kInvalid = CUDA_ERROR_INVALID_VALUE;

// Common parameters of tiled maps and im2col maps.
struct Encoding {
    CUtensorMap* map;
    CUtensorMapDataType type;
    cuuint32_t rank;
    void* address;
    const cuuint64_t* dims;
    const cuuint64_t* strides;
    const cuuint32_t* element_strides;
    std::size_t row_bytes;  // of a box
    CUtensorMapSwizzle swizzle;
};

// Why the driver refuses the map; "" if it accepts it. Rank and type have been checked.
std::string problem(const Encoding& e) {
    if (e.map == nullptr || reinterpret_cast<std::uintptr_t>(e.map) % 64 != 0)
        return "the map must be at a multiple of 64 bytes";
    if (e.address == nullptr || reinterpret_cast<std::uintptr_t>(e.address) % kPiece != 0)
        return "the matrix must begin at a multiple of 16 bytes";
    for (cuuint32_t i = 0; i < e.rank; ++i) {
        if (e.dims[i] < 1 || e.dims[i] > std::uint64_t{1} << 32)
            return "extent " + text(i) + " is " + text(e.dims[i]) + "; expected 1 to 2^32";
        if (e.element_strides[i] < 1 || e.element_strides[i] > 8)
            return "element stride " + text(i) + " is " + text(e.element_strides[i]) + "; expected 1 to 8";
        if (i > 0 && (e.strides[i - 1] % kPiece != 0 || e.strides[i - 1] >= std::uint64_t{1} << 40))
            return "stride " + text(i - 1) + " is " + text(e.strides[i - 1]) +
                   " bytes; expected a multiple of 16 below 2^40";
    }
    if (e.row_bytes % kPiece != 0)
        return "the box's rows are " + text(e.row_bytes) + " bytes; expected a multiple of 16";
    if (e.swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && e.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B &&
        e.row_bytes > span_of(e.swizzle))
        return "the box's rows are " + text(e.row_bytes) + " bytes; this swizzle takes at most " +
               text(span_of(e.swizzle));
    return "";
}

// A feature that the driver accepts but the stand-in does not model; "" if there is none.
std::string not_modelled(const Encoding& e, CUtensorMapInterleave interleave) {
    if (e.swizzle < CU_TENSOR_MAP_SWIZZLE_NONE || e.swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        return "swizzle " + text(e.swizzle) + " is not modelled";
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return "interleaving is not modelled";
    if (e.swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && e.row_bytes < span_of(e.swizzle))
        return "swizzled boxes narrower than the swizzle's span are not modelled";
    return "";
}

CUresult store(const TensorMap& known, CUtensorMap* map) {
    *map = {};
    std::memcpy(map, &known, sizeof known);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion /*l2_promotion*/,
                                CUtensorMapFloatOOBfill fill) {
    constexpr auto kName = "cuTensorMapEncodeTiled";
    const unsigned element_size = size_of(type);
    if (element_size == 0) return refuse(kInvalid, kName, "data type " + text(type));
    if (rank < 1 || rank > 5) return refuse(kInvalid, kName, "rank " + text(rank) + "; expected 1 to 5");
    for (cuuint32_t i = 0; i < rank; ++i)
        if (box[i] < 1 || box[i] > 256)
            return refuse(kInvalid, kName,
                          "the box's extent " + text(i) + " is " + text(box[i]) + "; expected 1 to 256");
    const Encoding encoding{.map = map,
                            .type = type,
                            .rank = rank,
                            .address = address,
                            .dims = dims,
                            .strides = strides,
                            .element_strides = element_strides,
                            .row_bytes = std::size_t{box[0]} * element_size,
                            .swizzle = swizzle};
    if (const std::string why = problem(encoding); !why.empty()) return refuse(kInvalid, kName, why);
    if (const std::string why = not_modelled(encoding, interleave); !why.empty())
        return refuse(CUDA_ERROR_NOT_SUPPORTED, kName, why);
    const bool of_matrices = rank == 4 && box[2] == 1 && box[3] == 1;
    if ((rank > 2 && !of_matrices) || (rank >= 2 && element_strides[1] != 1))
        return refuse(CUDA_ERROR_NOT_SUPPORTED, kName,
                      "more than two extents (but for four, with boxes of 1 along the last two) and "
                      "element strides are not modelled");
    return store({.signature = kSignature,
                  .address = static_cast<char*>(address),
                  .dims = {dims[0], rank >= 2 ? dims[1] : 1},
                  .pitch = rank >= 2 ? strides[0] : 0,
                  .matrices = {of_matrices ? dims[2] : 1, of_matrices ? dims[3] : 1},
                  .matrix_pitch = {of_matrices ? strides[1] : 0, of_matrices ? strides[2] : 0},
                  .box = {box[0], rank >= 2 ? box[1] : 1},
                  .element_size = element_size,
                  .rank = rank,
                  .swizzle = swizzle,
                  .fill_with_nan = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE},
                 map);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                 const cuuint64_t* dims, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion /*l2_promotion*/,
                                 CUtensorMapFloatOOBfill fill) {
    constexpr auto kName = "cuTensorMapEncodeIm2col";
    const unsigned element_size = size_of(type);
    if (element_size == 0) return refuse(kInvalid, kName, "data type " + text(type));
    if (rank < 3 || rank > 5) return refuse(kInvalid, kName, "rank " + text(rank) + "; expected 3 to 5");
    if (channels < 1 || channels > 256)
        return refuse(kInvalid, kName, "channels per pixel are " + text(channels) + "; expected 1 to 256");
    if (pixels < 1 || pixels > 1024)
        return refuse(kInvalid, kName, "pixels per column are " + text(pixels) + "; expected 1 to 1024");
    const Encoding encoding{.map = map,
                            .type = type,
                            .rank = rank,
                            .address = address,
                            .dims = dims,
                            .strides = strides,
                            .element_strides = element_strides,
                            .row_bytes = std::size_t{channels} * element_size,
                            .swizzle = swizzle};
    if (const std::string why = problem(encoding); !why.empty()) return refuse(kInvalid, kName, why);
    if (rank != 4)
        return refuse(CUDA_ERROR_NOT_SUPPORTED, kName, "rank " + text(rank) + " is not modelled, only 4");
    if (const std::string why = not_modelled(encoding, interleave); !why.empty())
        return refuse(CUDA_ERROR_NOT_SUPPORTED, kName, why);
    TensorMap known{.signature = kSignature,
                    .address = static_cast<char*>(address),
                    .dims = {dims[0], dims[1]},
                    .pitch = strides[0],
                    .matrices = {dims[2], dims[3]},
                    .matrix_pitch = {strides[1], strides[2]},
                    .box = {channels, pixels},
                    .element_size = element_size,
                    .rank = rank,
                    .swizzle = swizzle,
                    .fill_with_nan = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
                    .im2col = true};
    for (const int i : {0, 1}) {
        for (const auto& [corner, at] : {std::pair{"lower", lower[i]}, {"upper", upper[i]}})
            if (at < -128 || at > 127)
                return refuse(kInvalid, kName,
                              std::string(corner) + " corner " + std::to_string(i) + " is " +
                                  std::to_string(at) + "; expected -128 to 127");
        known.pixels.lower[i] = static_cast<std::int8_t>(lower[i]);
        known.pixels.upper[i] = static_cast<std::int8_t>(upper[i]);
        known.pixels.step[i] = static_cast<std::uint8_t>(element_strides[i + 1]);
        if (known.last_of_box(i) < lower[i])
            return refuse(kInvalid, kName,
                          "the bounding box goes from " + std::to_string(lower[i]) + " to " +
                              std::to_string(known.last_of_box(i)) + " in direction " + std::to_string(i) +
                              "; expected at least one pixel");
    }
    return store(known, map);
}
