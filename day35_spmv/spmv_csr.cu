// Day 35, CSR: the entries of a row are neighbours, so a row can be summed before anything is written.    PMPP 14.3
//
//   version          what is new                                             what limits it
//   csr_scalar       a thread per row, no atomics                            neighbouring threads read far apart
//   csr_vector       2 to 32 lanes a row, chosen by the mean length          4 bytes a load; long rows
//   csr_vectorised   16-byte loads, of values and of columns                 long rows among short ones
#include <cuda_runtime.h>

#include <algorithm>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "spmv_device.cuh"
#include "spmv_makers.hpp"

namespace day35 {
namespace {

using course::kWarpSize;

constexpr int kBlock = 256;

// Idea: a thread per row sums its products in a register, and writes y once.
// Cost removed: COO's row numbers, its atomics, and setting y to 0.
// Still limits it: the 32 lanes of a warp load from 32 rows, at 32 places, and all wait for the
// longest row.
template <class O>
__global__ void csr_scalar_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread();
    if (row >= a.rows) return;
    float sum = 0;
    for (O i = a.row_start[row]; i < a.row_start[row + 1]; ++i)
        sum += a.values[i] * x[a.cols[i]];
    y[row] = sum;
}

// Idea: kLanes neighbouring lanes for a row. They load neighbouring entries and add up their sums
// by shuffles.
// Cost removed: scattered loads. And a warp waits for the longest of 32 / kLanes rows, not of 32.
// Still limits it: loads of 4 bytes. And a row that is much longer than the others still has kLanes
// lanes.
template <int kLanes, class O>
__global__ void csr_vector_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    float sum = 0;
    if (row < a.rows) {
        const O end = a.row_start[row + 1];
        for (O i = a.row_start[row] + lane; i < end; i += kLanes)
            sum += __ldcs(&a.values[i]) * x[__ldcs(&a.cols[i])];
    }
    sum = sum_of_lanes<kLanes>(sum);
    if (row < a.rows && lane == 0) y[row] = sum;
}

// Idea: a lane loads four entries at once, 16-byte aligned. Entries of the pack that belong to the
// rows before and after are not multiplied.
// Cost removed: three of four loads of the matrix, and the latency between them.
// Still limits it: long rows among short ones; for rows of a few entries, lanes without work.
template <int kLanes, class O>
__global__ void csr_vectorised_kernel(CsrView<O> a, const float* x, float* y) {
    constexpr int kPack = kPackedElements;
    const Offset row = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    float sum = 0;
    if (row < a.rows) {
        const O begin = a.row_start[row];
        const O end = a.row_start[row + 1];
        for (O i = begin / kPack * kPack + lane * kPack; i < end; i += kLanes * kPack) {
            const auto cols = load_once<kPack>(a.cols + i);
            const auto values = load_once<kPack>(a.values + i);
#pragma unroll
            for (int j = 0; j < kPack; ++j) {
                if (i + j >= begin && i + j < end) sum += values.value[j] * x[cols.value[j]];
            }
        }
    }
    sum = sum_of_lanes<kLanes>(sum);
    if (row < a.rows && lane == 0) y[row] = sum;
}

// --- Launchers -----------------------------------------------------------------------------------

// A kernel with kLanes lanes for each row.
template <class O>
struct RowKernel {
    int lanes;
    void (*kernel)(CsrView<O>, const float*, float*);
};

// The fewest lanes that take `mean` entries in one step, at `pack` a lane, at most a warp.
int lanes_by_mean(double mean, int pack) {
    int lanes = 2;
    while (lanes < kWarpSize && lanes * pack < mean)
        lanes *= 2;
    return lanes;
}

template <class O>
class RowOperator final : public Operator {
  public:
    RowOperator(DeviceCsr<O> matrix, RowKernel<O> kernel)
        : Operator(matrix.shape(), matrix.bytes(), matrix.bytes(),
                   std::to_string(kernel.lanes) + (kernel.lanes == 1 ? " lane a row" : " lanes a row")),
          matrix_(std::move(matrix)),
          kernel_(kernel) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        const std::size_t threads = static_cast<std::size_t>(shape().rows) * kernel_.lanes;
        const unsigned grid = course::blocks_for(threads, kBlock);
        const auto kernel = kernel_.kernel;
        kernel<<<grid, kBlock, 0, stream>>>(matrix_.view(), x, y);
        CUDA_CHECK_LAUNCH();
    }

    DeviceCsr<O> matrix_;
    RowKernel<O> kernel_;
};

template <class O>
std::unique_ptr<Operator> row_operator(DeviceCsr<O> matrix, std::initializer_list<RowKernel<O>> kernels,
                                       int pack) {
    const double mean = static_cast<double>(matrix.entries()) / std::max(1, matrix.shape().rows);
    const auto* const kernel = std::ranges::find(kernels, lanes_by_mean(mean, pack), &RowKernel<O>::lanes);
    return std::make_unique<RowOperator<O>>(std::move(matrix), *kernel);
}

}  // namespace

template <class O>
std::unique_ptr<Operator> csr_scalar(DeviceCsr<O> matrix, std::span<const Offset>) {
    return std::make_unique<RowOperator<O>>(std::move(matrix), RowKernel<O>{1, csr_scalar_kernel<O>});
}

template <class O>
std::unique_ptr<Operator> csr_vector(DeviceCsr<O> matrix, std::span<const Offset>) {
    return row_operator<O>(std::move(matrix),
                           {{2, csr_vector_kernel<2, O>},
                            {4, csr_vector_kernel<4, O>},
                            {8, csr_vector_kernel<8, O>},
                            {16, csr_vector_kernel<16, O>},
                            {32, csr_vector_kernel<32, O>}},
                           1);
}

template <class O>
std::unique_ptr<Operator> csr_vectorised(DeviceCsr<O> matrix, std::span<const Offset>) {
    return row_operator<O>(std::move(matrix),
                           {{2, csr_vectorised_kernel<2, O>},
                            {4, csr_vectorised_kernel<4, O>},
                            {8, csr_vectorised_kernel<8, O>},
                            {16, csr_vectorised_kernel<16, O>},
                            {32, csr_vectorised_kernel<32, O>}},
                           kPackedElements);
}

int vectorised_lanes(double mean) {
    return lanes_by_mean(mean, kPackedElements);
}

template std::unique_ptr<Operator> csr_scalar<Offset>(DeviceCsr<Offset>, std::span<const Offset>);
template std::unique_ptr<Operator> csr_vector<Offset>(DeviceCsr<Offset>, std::span<const Offset>);
template std::unique_ptr<Operator> csr_vectorised<Offset>(DeviceCsr<Offset>, std::span<const Offset>);

std::unique_ptr<Operator> make_csr_scalar(const CsrMatrix& csr, OffsetRule rule) {
    return upload_csr<csr_scalar<std::int32_t>, csr_scalar<Offset>>(csr, rule);
}
std::unique_ptr<Operator> make_csr_vector(const CsrMatrix& csr, OffsetRule rule) {
    return upload_csr<csr_vector<std::int32_t>, csr_vector<Offset>>(csr, rule);
}
std::unique_ptr<Operator> make_csr_vectorised(const CsrMatrix& csr, OffsetRule rule) {
    return upload_csr<csr_vectorised<std::int32_t>, csr_vectorised<Offset>>(csr, rule);
}

}  // namespace day35
