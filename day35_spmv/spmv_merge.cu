// Day 35, merge path: every thread has the same number of steps, whatever the rows look like.
//
//   version     what is new                                                  what limits it
//   csr_merge   rows and entries together are cut into equal pieces          searches, and a pass for what was cut
//
// Going through a CSR matrix is merging two sorted lists: the ends of the rows, and the numbers 0,
// 1, 2, ... of the entries. Each step either takes an entry (add its product) or the end of a row
// (write the sum). The path through the merge has rows + entries steps, so it can be cut where one
// likes, and a binary search on the cut's diagonal finds where in both lists it is. D. Merrill and
// M. Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016.
//
//            entries 0 1 2 3 4 5           rows end at 2, 2, 6 (the second is empty)
//   end 2            e-e-|                  e: take an entry, to the right
//   end 2                |                  |: end of a row, down
//   end 6                e-e-e-e-|
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "spmv_device.cuh"
#include "spmv_makers.hpp"

namespace day35 {
namespace {

using course::kWarpSize;
using course::kWholeWarp;

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / kWarpSize;
constexpr int kSteps = 8;               // of a thread
constexpr int kTile = kBlock * kSteps;  // of a block
// Packs of four entries that a block may need: its entries need not begin at a multiple of four.
constexpr int kPacks = kSteps / kPackedElements + 1;

// How many of row_end[0, rows) a path has passed after `steps` steps; the rest of the steps were
// entries.
template <class RowEnd, class Count>
__host__ __device__ Count rows_passed(const RowEnd& row_end, Count rows, Count entries, Count steps) {
    Count low = steps > entries ? steps - entries : 0;
    Count high = steps < rows ? steps : rows;
    while (low < high) {
        const Count middle = low + (high - low) / 2;
        if (row_end(middle) <= steps - middle - 1) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// For each thread the sum over its run of keys, as sum_of_run, but of the whole block; `before`:
// without the thread's own value.
__device__ float sum_of_run_in_block(Index key, float value, float* before) {
    __shared__ Index last_key[kWarps];
    __shared__ float last_sum[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
    float sum = sum_of_run(key, value);
    if (lane == kWarpSize - 1) {
        last_key[warp] = key;
        last_sum[warp] = sum;
    }
    __syncthreads();
    Index open_key = kNoColumn;
    float open_sum = 0;
    for (int w = 0; w < warp; ++w) {
        open_sum = last_sum[w] + (last_key[w] == open_key ? open_sum : 0.0f);
        open_key = last_key[w];
    }
    if (key == open_key) sum += open_sum;
    const float previous = __shfl_up_sync(kWholeWarp, sum, 1);
    *before = lane == 0 ? open_sum : previous;
    return sum;
}

// Idea: block b takes the steps from b * kTile on, thread t of it kSteps of them. A row that ends
// with a thread is its to write; what it has of a row that goes on is handed to the thread that
// ends it, and from the block's last thread to the next kernel.
// Cost removed: any difference between threads. One dense row among empty ones is as good as a
// band.
// Still limits it: two searches, a scan over the block and a second kernel, even where the rows are
// all alike.
template <class O>
__global__ void __launch_bounds__(kBlock)
    csr_merge_kernel(CsrView<O> a, Offset entries, const Index* tile_rows, float* carries, const float* x,
                     float* y) {
    alignas(16) __shared__ float products[kPacks * kBlock * kPackedElements];
    __shared__ int row_ends[kTile + 1];
    const Offset first_step = static_cast<Offset>(blockIdx.x) * kTile;
    const Index first_row = tile_rows[blockIdx.x];
    const int rows = tile_rows[blockIdx.x + 1] - first_row;  // that end here
    const Offset begin = first_step - first_row;
    const auto steps = static_cast<int>(min(Offset{kTile}, a.rows + entries - first_step));
    const Offset origin = begin / kPackedElements * kPackedElements;
    const float* const own = products + (begin - origin);

    stage_products<kBlock, kPacks>(a, x, begin, begin + steps - rows, products);
    for (int i = static_cast<int>(threadIdx.x); i < rows; i += kBlock)
        row_ends[i] = static_cast<int>(a.row_start[first_row + i + 1] - begin);
    if (threadIdx.x == 0) row_ends[rows] = std::numeric_limits<int>::max();  // the row that goes on
    __syncthreads();

    int step = min(static_cast<int>(threadIdx.x) * kSteps, steps);
    const int end = min(step + kSteps, steps);
    int row = rows_passed([&](int i) { return row_ends[i]; }, rows, steps - rows, step);
    int ended = kNoColumn;  // the first row that ends with this thread: its beginning may be others'
    float ended_sum = 0;
    float sum = 0;
    for (; step < end; ++step) {
        const int entry = step - row;
        if (entry < row_ends[row]) {
            sum += own[entry];
            continue;
        }
        if (ended == kNoColumn) {
            ended = row;
            ended_sum = sum;
        } else {
            y[first_row + row] = sum;
        }
        sum = 0;
        ++row;
    }

    float before = 0;
    const float open = sum_of_run_in_block(row, sum, &before);
    if (ended != kNoColumn) y[first_row + ended] = ended_sum + before;
    if (threadIdx.x == kBlock - 1) carries[blockIdx.x] = open;
}

template <class O>
class MergeOperator final : public Operator {
  public:
    MergeOperator(DeviceCsr<O> matrix, std::span<const Index> tile_rows)
        : Operator(matrix.shape(), matrix.bytes() + tile_rows.size() * sizeof(Index), matrix.bytes()),
          matrix_(std::move(matrix)),
          tile_rows_(upload(tile_rows)),
          carries_(tile_rows.size() - 1) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        csr_merge_kernel<<<static_cast<unsigned>(carries_.size()), kBlock, 0, stream>>>(
            matrix_.view(), matrix_.entries(), tile_rows_.data(), carries_.data(), x, y);
        CUDA_CHECK_LAUNCH();
        // Nothing goes on after the last block.
        launch_add_carries(tile_rows_.data() + 1, carries_.data(), static_cast<Offset>(carries_.size()) - 1,
                           y, stream);
    }

    DeviceCsr<O> matrix_;
    course::DeviceBuffer<Index> tile_rows_;        // where each block begins, and the last ends
    mutable course::DeviceBuffer<float> carries_;  // work space
};

}  // namespace

template <class O>
std::unique_ptr<Operator> csr_merge(DeviceCsr<O> matrix, std::span<const Offset> row_start) {
    const Offset rows = matrix.shape().rows;
    const Offset all_steps = rows + matrix.entries();
    std::vector<Index> tile_rows;
    for (Offset step = 0; step < all_steps; step += kTile)
        tile_rows.push_back(static_cast<Index>(
            rows_passed([&](Offset i) { return row_start[i + 1]; }, rows, matrix.entries(), step)));
    tile_rows.push_back(static_cast<Index>(rows));
    return std::make_unique<MergeOperator<O>>(std::move(matrix), tile_rows);
}

template std::unique_ptr<Operator> csr_merge<Offset>(DeviceCsr<Offset>, std::span<const Offset>);

std::unique_ptr<Operator> make_csr_merge(const CsrMatrix& csr, OffsetRule rule) {
    return upload_csr<csr_merge<std::int32_t>, csr_merge<Offset>>(csr, rule);
}

}  // namespace day35
