// Day 35, COO: one entry, one product. How are the products added to y?                                PMPP 14.2
//
//   version         what is new                                            what limits it
//   coo_atomic      a thread per entry adds its product to y               an atomic addition for every entry
//   coo_segmented   a warp sums runs of the same row before it adds        12 bytes an entry: the row is read as well
//
// Entries are balanced over the threads whatever the rows look like; but y has to be set to 0
// first.
#include <cuda_runtime.h>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "spmv_device.cuh"
#include "spmv_makers.hpp"

namespace day35 {
namespace {

using course::kWarpSize;
using course::kWholeWarp;

constexpr int kBlock = 256;
constexpr int kSteps =
    8;  // a warp of coo_segmented takes kSteps * 32 entries, so that the runs it cuts are few

// Idea: a thread takes an entry, and adds value * x[column] to y[row].
// Cost removed: none yet. No thread has more to do than another, even if one row has all entries.
// Still limits it: an atomic for each entry, and those of one row wait for one another.
__global__ void coo_atomic_kernel(CooView a, const float* x, float* y) {
    const Offset i = global_thread();
    if (i < a.entries) atomicAdd(&y[a.rows[i]], a.values[i] * x[a.cols[i]]);
}

// Where a sum of products, one per entry, comes from: a matrix and a vector,
struct Products {
    CooView a;
    const float* x;
    __device__ float operator()(Offset i) const { return a.values[i] * x[a.cols[i]]; }
};
// or an array.
struct Sums {
    const float* sums;
    __device__ float operator()(Offset i) const { return sums[i]; }
};

// Idea: entries are sorted by row, so a warp finds runs of the same row among its 32 and sums each
// by a segmented scan; the run that reaches its last lane goes on into the next 32.
// Cost removed: all atomics but one for each run.
// Still limits it: memory: 12 bytes an entry.
template <class Term>
__global__ void __launch_bounds__(kBlock)
    add_segments_kernel(Offset entries, const Index* rows, Term term, float* y) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const Offset first = global_thread() / kWarpSize * (kSteps * kWarpSize);
    Index open_row = kNoColumn;  // of the run that the last step left unfinished, and its sum; in every lane
    float open_sum = 0;
    for (Offset begin = first; begin < min(entries, first + kSteps * kWarpSize); begin += kWarpSize) {
        const Offset i = begin + lane;
        const Index row = i < entries ? rows[i] : kNoColumn;  // beyond the end: a run of its own
        float sum = sum_of_run(row, i < entries ? term(i) : 0.0f);

        const Index first_row = __shfl_sync(kWholeWarp, row, 0);
        if (row == open_row) sum += open_sum;
        if (lane == 0 && open_row != kNoColumn && first_row != open_row) atomicAdd(&y[open_row], open_sum);

        const Index next_row = __shfl_down_sync(kWholeWarp, row, 1);
        if (lane < kWarpSize - 1 && row != next_row && row != kNoColumn) atomicAdd(&y[row], sum);
        open_row = __shfl_sync(kWholeWarp, row, kWarpSize - 1);
        open_sum = __shfl_sync(kWholeWarp, sum, kWarpSize - 1);
    }
    if (lane == 0 && open_row != kNoColumn) atomicAdd(&y[open_row], open_sum);
}

template <class Term>
void launch_add_segments(Offset entries, const Index* rows, Term term, float* y, cudaStream_t stream) {
    if (entries == 0) return;
    const std::size_t warps = course::ceil_div<std::size_t>(entries, kSteps * kWarpSize);
    add_segments_kernel<<<course::blocks_for(warps * kWarpSize, kBlock), kBlock, 0, stream>>>(entries, rows,
                                                                                              term, y);
    CUDA_CHECK_LAUNCH();
}

template <bool kSegmented>
class CooOperator final : public Operator {
  public:
    CooOperator(Shape shape, DeviceCoo matrix)
        : Operator(shape, matrix.bytes(), matrix.bytes()), matrix_(std::move(matrix)) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        CUDA_CHECK(cudaMemsetAsync(y, 0, static_cast<std::size_t>(shape().rows) * sizeof(float), stream));
        const CooView a = matrix_.view();
        if constexpr (kSegmented) {
            launch_add_coo(a, x, y, stream);
        } else if (a.entries > 0) {
            coo_atomic_kernel<<<course::blocks_for(a.entries, kBlock), kBlock, 0, stream>>>(a, x, y);
            CUDA_CHECK_LAUNCH();
        }
    }

    DeviceCoo matrix_;
};

template <bool kSegmented>
std::unique_ptr<Operator> make_coo(const CsrMatrix& csr) {
    return std::make_unique<CooOperator<kSegmented>>(csr.shape(), DeviceCoo(CooMatrix::from(csr)));
}

}  // namespace

void launch_add_coo(const CooView& coo, const float* x, float* y, cudaStream_t stream) {
    launch_add_segments(coo.entries, coo.rows, Products{coo, x}, y, stream);
}

void launch_add_carries(const Index* rows, const float* sums, Offset count, float* y, cudaStream_t stream) {
    launch_add_segments(count, rows, Sums{sums}, y, stream);
}

std::unique_ptr<Operator> make_coo_atomic(const CsrMatrix& csr, OffsetRule) {
    return make_coo<false>(csr);
}
std::unique_ptr<Operator> make_coo_segmented(const CsrMatrix& csr, OffsetRule) {
    return make_coo<true>(csr);
}

}  // namespace day35
