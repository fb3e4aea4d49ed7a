// Bug hunt "column_sums": the sum of every column.
//
//   out[c] = the sum of in(r, c) over all rows r
//
//   ./course run bug_hunts --only column_sums
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/ptx.cuh"

namespace hunts {
namespace {

constexpr int kBlock = 128;
constexpr std::size_t kStages = 4;

// Idea: a thread for each column; the copies of the next three rows are in flight while this
// one is added. A thread reads what it has copied itself: no barrier is needed, it only waits for
// its own copies.
// Cost removed: waiting for one load after the other.
// Still limits it: a matrix of few columns has few threads.
__global__ void sum_columns(DeviceMatrix<const float> in, DeviceSpan<float> out) {
    __shared__ float stages[kStages][kBlock];
    const std::size_t col = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (col >= in.cols()) return;

    const auto copy = [&](std::size_t row) {
        if (row < in.rows()) course::ptx::cp_async_4(&stages[row % kStages][threadIdx.x], &in(row, col));
        course::ptx::cp_async_commit();
    };
    for (std::size_t row = 0; row < kStages - 1; ++row)
        copy(row);
    float sum = 0;
    for (std::size_t row = 0; row < in.rows(); ++row) {
        copy(row + kStages - 1);
        course::ptx::cp_async_wait<kStages - 1>();  // all but the newest groups: this row has arrived
        sum += stages[row % kStages][threadIdx.x];
    }
    out[col] = sum;
}

}  // namespace

void column_sums(DeviceMatrix<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require_size("column_sums", "out", out, in.cols());
    require_apart("column_sums", in, as_row(out));
    const unsigned blocks = course::blocks_for(in.cols(), kBlock);
    if (blocks == 0) return;
    sum_columns<<<blocks, kBlock, 0, stream>>>(in, out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
