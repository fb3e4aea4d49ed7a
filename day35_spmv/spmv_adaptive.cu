// Day 35, adaptive CSR: entries are read in the order of memory, whatever rows they belong to.
//
//   version        what is new                                               what limits it
//   csr_adaptive   a block takes rows up to a fixed number of entries        the way through shared memory
//
// Which rows go together is decided once, when the matrix comes to the device. After J. Greathouse
// and M. Daga, "Efficient sparse matrix-vector multiplication on GPUs using the CSR storage
// format", SC 2014; a row too long for a block is cut here.
#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/warp.cuh"
#include "spmv_device.cuh"
#include "spmv_makers.hpp"

namespace day35 {
namespace {

using course::kWarpSize;
using course::kWholeWarp;

constexpr int kBlock = 128;
// No thread of the multiprocessor idle: 32 registers a thread on most GPUs.
constexpr int kBlocksPerSm = course::kThreadsPerMultiprocessor / kBlock;
constexpr int kPacks = 2;  // of four entries, for each thread
constexpr int kTile = kBlock * kPacks * kPackedElements;
constexpr int kLongRow = 32;  // entries that one lane sums without keeping the others waiting

// What a block does: the entries from `begin` to the next piece's.
struct alignas(16) Piece {
    Offset begin;
    Index row;
    Index
        rows;  // > 0: so many whole rows from `row` on; 0: the first part of a long row; -k: its sum is carry k - 1
};

struct Plan {
    std::vector<Piece> pieces;  // and after the last one where the entries end
    std::vector<Index> carry_rows;
};

Plan make_plan(std::span<const Offset> row_start) {
    const auto rows = static_cast<Index>(row_start.size() - 1);
    // How far a block that begins with this entry gets; its packs begin at multiples of four.
    const auto reach = [](Offset begin) { return begin / kPackedElements * kPackedElements + kTile; };
    Plan plan;
    for (Index row = 0; row < rows;) {
        const Offset begin = row_start[row];
        Index end = row;
        while (end < rows && end - row < kTile && row_start[end + 1] <= reach(begin))
            ++end;
        plan.pieces.push_back({begin, row, end - row});
        if (end == row) {
            for (Offset part = reach(begin); part < row_start[row + 1]; part = reach(part)) {
                plan.carry_rows.push_back(row);
                plan.pieces.push_back({part, row, -static_cast<Index>(plan.carry_rows.size())});
            }
            ++end;
        }
        row = end;
    }
    plan.pieces.push_back({row_start.back(), rows, 0});
    return plan;
}

// The sum of values[begin, end) with `lanes` lanes, a power of two; in all of them. All lanes of
// the warp call it.
__device__ float sum_with_lanes(const float* values, int begin, int end, int lanes) {
    float sum = 0;
    for (int i = begin + static_cast<int>(threadIdx.x) % lanes; i < end; i += lanes)
        sum += values[i];
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(kWholeWarp, sum, distance);
    return sum;
}

// Idea: a block computes the products of its piece into shared memory, and only then asks which row
// each is of: a few lanes sum each row, more of them where the piece has fewer rows.
// Cost removed: lanes that wait for long rows, and most of those that short rows leave idle:
// entries are read in whole packs.
// Still limits it: memory; and that each product passes through shared memory.
template <class O>
__global__ void __launch_bounds__(kBlock, kBlocksPerSm)
    csr_adaptive_kernel(CsrView<O> a, const Piece* pieces, float* carries, const float* x, float* y) {
    alignas(16) __shared__ float products[kTile];
    const Piece piece = pieces[blockIdx.x];
    const Offset end = pieces[blockIdx.x + 1].begin;
    stage_products<kBlock, kPacks>(a, x, piece.begin, end, products);
    __syncthreads();

    const Offset origin = piece.begin / kPackedElements * kPackedElements;
    if (piece.rows <= 0) {  // part of one row, for a warp
        if (threadIdx.x >= kWarpSize) return;
        const float sum = sum_with_lanes(products, static_cast<int>(piece.begin - origin),
                                         static_cast<int>(end - origin), kWarpSize);
        if (threadIdx.x == 0) (piece.rows == 0 ? y[piece.row] : carries[-piece.rows - 1]) = sum;
        return;
    }
    __shared__ int long_rows[kTile / kLongRow];
    __shared__ int long_count;
    if (threadIdx.x == 0) long_count = 0;
    int lanes = kWarpSize;
    while (lanes > 1 && lanes * piece.rows > kBlock)
        lanes /= 2;
    __syncthreads();
    for (int first = 0; first < piece.rows; first += kBlock / lanes) {
        const int i = first + static_cast<int>(threadIdx.x) / lanes;
        const Index row = piece.row + min(i, piece.rows - 1);
        const auto begin = static_cast<int>(a.row_start[row] - origin);
        const auto row_end = static_cast<int>(a.row_start[row + 1] - origin);
        const bool is_long = row_end - begin > kLongRow * lanes;
        const float sum = sum_with_lanes(products, begin, is_long ? begin : row_end, lanes);
        if (i >= piece.rows || threadIdx.x % lanes != 0) continue;
        if (is_long) {
            long_rows[atomicAdd(&long_count, 1)] = row;
        } else {
            y[row] = sum;
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x) / kWarpSize; i < long_count; i += kBlock / kWarpSize) {
        const Index row = long_rows[i];
        const float sum = sum_with_lanes(products, static_cast<int>(a.row_start[row] - origin),
                                         static_cast<int>(a.row_start[row + 1] - origin), kWarpSize);
        if (threadIdx.x % kWarpSize == 0) y[row] = sum;
    }
}

template <class O>
class AdaptiveOperator final : public Operator {
  public:
    AdaptiveOperator(DeviceCsr<O> matrix, const Plan& plan)
        : Operator(matrix.shape(), matrix.bytes() + plan.pieces.size() * sizeof(Piece), matrix.bytes(),
                   std::to_string(plan.pieces.size() - 1) + " pieces"),
          matrix_(std::move(matrix)),
          pieces_(upload(std::span<const Piece>(plan.pieces))),
          carry_rows_(upload(std::span<const Index>(plan.carry_rows))),
          carries_(plan.carry_rows.size()) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        csr_adaptive_kernel<<<static_cast<unsigned>(pieces_.size() - 1), kBlock, 0, stream>>>(
            matrix_.view(), pieces_.data(), carries_.data(), x, y);
        CUDA_CHECK_LAUNCH();
        launch_add_carries(carry_rows_.data(), carries_.data(), static_cast<Offset>(carries_.size()), y,
                           stream);
    }

    DeviceCsr<O> matrix_;
    course::DeviceBuffer<Piece> pieces_;
    course::DeviceBuffer<Index> carry_rows_;
    mutable course::DeviceBuffer<float> carries_;  // work space
};

}  // namespace

template <class O>
std::unique_ptr<Operator> csr_adaptive(DeviceCsr<O> matrix, std::span<const Offset> row_start) {
    return std::make_unique<AdaptiveOperator<O>>(std::move(matrix), make_plan(row_start));
}

template std::unique_ptr<Operator> csr_adaptive<Offset>(DeviceCsr<Offset>, std::span<const Offset>);

std::unique_ptr<Operator> make_csr_adaptive(const CsrMatrix& csr, OffsetRule rule) {
    return upload_csr<csr_adaptive<std::int32_t>, csr_adaptive<Offset>>(csr, rule);
}

}  // namespace day35
