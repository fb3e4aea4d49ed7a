// Day 35, SELL-C-sigma: an ELL of its own for every warp, and with it fewer bytes.
//
//   version       what is new                                              what limits it
//   sell          32 rows are as wide as their longest one                 8 bytes an entry
//   packed_sell   columns as differences of 1, 2 or 4 bytes; 16-byte loads memory; and x, where columns are far apart
#include <cuda_runtime.h>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "spmv_device.cuh"
#include "spmv_makers.hpp"

namespace day35 {
namespace {

using course::kWarpSize;
static_assert(kSliceRows == kWarpSize, "a warp takes a slice, a lane a row");

constexpr int kBlock = 128;

// Idea: ELL for 32 rows at a time: a long row fills up its own slice only, and that less when rows
// near it are sorted by length.
// Cost removed: most of ELL's filling, and nearly all of JDS's disorder.
// Still limits it: the bytes, 8 for each entry, of which 4 only say where it stands.
__global__ void __launch_bounds__(kBlock) sell_kernel(SellView a, const float* x, float* y) {
    const Offset place = global_thread();
    if (place >= a.rows) return;
    const Offset slice = place / kSliceRows;
    const Offset end = a.slice_start[slice + 1];
    float sum = 0;
    for (Offset i = a.slice_start[slice] + place % kSliceRows; i < end; i += kSliceRows) {
        const Index col = __ldcs(&a.cols[i]);
        if (col == kNoColumn) break;
        sum += __ldcs(&a.values[i]) * x[col];
    }
    y[a.order == nullptr ? place : a.order[place]] = sum;
}

// A lane's row of a packed slice: values and codes point to the slice.
template <class Code>
__device__ float packed_row(const PackedSlice& slice, const Code* codes, const float* values,
                            const float* x) {
    constexpr int kPack = kPackedElements;
    constexpr auto kNoCode = static_cast<Code>(-1);
    const unsigned lane = threadIdx.x % kWarpSize;
    unsigned left = slice.width();
    Index col = slice.base;
    float sum = 0;
    const auto add = [&](Code code, float value) {
        if (code == kNoCode) return;
        col += static_cast<Index>(code);
        sum += value * x[col];
    };
    // Pointers that walk, and no index: 32 registers are enough, and all warps fit. With 34 it
    // takes a quarter longer.
    codes += lane * kPack;
    values += lane * kPack;
#pragma unroll 2
    for (; left >= kPack; left -= kPack) {
        const auto four_codes = load_once<kPack>(codes);
        const auto four_values = load_once<kPack>(values);
        codes += kPack * kWarpSize;
        values += kPack * kWarpSize;
#pragma unroll
        for (int j = 0; j < kPack; ++j)
            add(four_codes.value[j], four_values.value[j]);
    }
    codes -= lane * (kPack - 1);
    values -= lane * (kPack - 1);
    for (; left > 0; --left) {
        add(__ldcs(codes), __ldcs(values));
        codes += kWarpSize;
        values += kWarpSize;
    }
    return sum;
}

// Idea: columns of a row ascend, often by little. So only the steps between them are stored, in as
// few bytes as the slice's largest needs. And a lane's entries stand by fours, a load each for
// values and for codes.
// Cost removed: up to 3 of 8 bytes for each entry; three of four loads.
// Still limits it: memory, at 5 or 6 bytes an entry. Where columns are far apart, the reads of x:
// 32 bytes move for each 4.
__global__ void __launch_bounds__(kBlock) packed_sell_kernel(PackedSellView a, const float* x, float* y) {
    const Offset place = global_thread();
    if (place >= a.rows) return;
    const PackedSlice slice = a.slices[place / kSliceRows];
    const float* const values = a.values + static_cast<std::size_t>(slice.first_value) * kWarpSize;
    const std::uint8_t* const codes = a.codes + static_cast<std::size_t>(slice.first_code) * kWarpSize;
    float sum = 0;
    switch (slice.code_bytes()) {
        case 1:
            sum = packed_row(slice, codes, values, x);
            break;
        case 2:
            sum = packed_row(slice, reinterpret_cast<const std::uint16_t*>(codes), values, x);
            break;
        default:
            sum = packed_row(slice, reinterpret_cast<const std::uint32_t*>(codes), values, x);
    }
    y[a.order == nullptr ? place : a.order[place]] = sum;
}

class SellOperator final : public Operator {
  public:
    SellOperator(const SellMatrix& sell, std::size_t filling, DeviceSell matrix)
        : Operator(sell.shape(), matrix.bytes(), matrix.bytes() - filling), matrix_(std::move(matrix)) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        sell_kernel<<<course::blocks_for(shape().rows, kBlock), kBlock, 0, stream>>>(matrix_.view(), x, y);
        CUDA_CHECK_LAUNCH();
    }

    DeviceSell matrix_;
};

class PackedSellOperator final : public Operator {
  public:
    PackedSellOperator(const PackedSellMatrix& packed, std::size_t filling, const std::string& choice,
                       DevicePackedSell matrix)
        : Operator(packed.shape(), matrix.bytes(), matrix.bytes() - filling, choice),
          matrix_(std::move(matrix)) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        packed_sell_kernel<<<course::blocks_for(shape().rows, kBlock), kBlock, 0, stream>>>(matrix_.view(), x,
                                                                                            y);
        CUDA_CHECK_LAUNCH();
    }

    DevicePackedSell matrix_;
};

}  // namespace

std::unique_ptr<Operator> make_sell(const CsrMatrix& csr, OffsetRule) {
    const SellMatrix sell = SellMatrix::from(csr);
    const std::size_t filling =
        (sell.cols().size() - static_cast<std::size_t>(csr.entries())) * (sizeof(Index) + sizeof(float));
    return std::make_unique<SellOperator>(sell, filling, DeviceSell(sell));
}

std::unique_ptr<Operator> make_packed_sell_with(const CsrMatrix& csr, Index sigma) {
    const PackedSellMatrix packed = PackedSellMatrix::from(csr, sigma);
    // Of a slice's bytes the filling is counted at the matrix's mean.
    const auto places = static_cast<double>(std::max<std::size_t>(1, packed.values().size()));
    const double place_bytes = sizeof(float) + static_cast<double>(packed.codes().size()) / places;
    const auto filling = static_cast<std::size_t>(
        (static_cast<double>(packed.values().size()) - static_cast<double>(csr.entries())) * place_bytes);
    char choice[64];
    std::snprintf(choice, sizeof(choice), "sigma %d, %.2f bytes a place", static_cast<int>(sigma),
                  place_bytes);
    return std::make_unique<PackedSellOperator>(packed, filling, choice, DevicePackedSell(packed));
}

}  // namespace day35
