// Day 35, ELL and what it became: a thread per row again, but now neighbouring threads read
// neighbouring places.
//
//   version   what is new                                                  what limits it
//   ell       every row filled up to the longest; stored by columns        one long row fills up all others        PMPP 14.4
//   hybrid    ELL up to a width, COO for what is longer                    two kernels                             PMPP 14.5
//   jds       rows sorted by length: nothing to fill up                    y is written out of order               PMPP 14.6
#include <cuda_runtime.h>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "spmv_device.cuh"
#include "spmv_makers.hpp"

namespace day35 {
namespace {

constexpr int kBlock = 256;

// Idea: entry k of all rows together, so that thread r reads next to what thread r - 1 reads.
// Cost removed: scattered reads, without a second lane for the row.
// Still limits it: the width is that of the longest row.
__global__ void ell_kernel(EllView a, const float* x, float* y) {
    const Offset row = global_thread();
    if (row >= a.rows) return;
    float sum = 0;
    for (Index k = 0; k < a.width; ++k) {
        const Offset place = static_cast<Offset>(k) * a.rows + row;
        const Index col = __ldcs(&a.cols[place]);
        if (col == kNoColumn) break;  // and not a product with 0: x may be infinite
        sum += __ldcs(&a.values[place]) * x[col];
    }
    y[row] = sum;
}

// Idea: the rows from the longest to the shortest, so that diagonal k belongs to the first threads
// alone, as many as it has entries.
// Cost removed: all filling; and the threads of a warp have rows of about the same length.
// Still limits it: y is written in the order of lengths; what neighbouring rows share of x is read
// at different times.
__global__ void jds_kernel(JdsView a, const float* x, float* y) {
    const Offset place = global_thread();
    if (place >= a.rows) return;
    float sum = 0;
    for (Index k = 0; k < a.diagonals; ++k) {
        const Offset i = a.diagonal_start[k] + place;
        if (i >= a.diagonal_start[k + 1]) break;
        sum += __ldcs(&a.values[i]) * x[__ldcs(&a.cols[i])];
    }
    y[a.order[place]] = sum;
}

void launch_ell(const EllView& a, const float* x, float* y, cudaStream_t stream) {
    ell_kernel<<<course::blocks_for(a.rows, kBlock), kBlock, 0, stream>>>(a, x, y);
    CUDA_CHECK_LAUNCH();
}

// What of a format's bytes is not filling, when each place takes 8 bytes.
std::size_t without_filling(std::size_t bytes, std::size_t places, Offset entries) {
    return bytes - (places - static_cast<std::size_t>(entries)) * (sizeof(Index) + sizeof(float));
}

class EllOperator final : public Operator {
  public:
    EllOperator(const EllMatrix& ell, Offset entries, DeviceEll matrix)
        : Operator(ell.shape(), matrix.bytes(), without_filling(matrix.bytes(), ell.cols().size(), entries),
                   "width " + std::to_string(ell.width())),
          matrix_(std::move(matrix)) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        launch_ell(matrix_.view(), x, y, stream);
    }

    DeviceEll matrix_;
};

class HybridOperator final : public Operator {
  public:
    HybridOperator(const HybridMatrix& hybrid, Offset entries, DeviceEll ell, DeviceCoo coo)
        : Operator(hybrid.shape(), ell.bytes() + coo.bytes(),
                   without_filling(ell.bytes() + coo.bytes(),
                                   hybrid.ell().cols().size() + hybrid.coo().cols().size(), entries),
                   "width " + std::to_string(hybrid.ell().width()) + ", " +
                       std::to_string(hybrid.coo().cols().size()) + " entries in COO"),
          ell_(std::move(ell)),
          coo_(std::move(coo)) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        launch_ell(ell_.view(), x, y, stream);
        launch_add_coo(coo_.view(), x, y, stream);
    }

    DeviceEll ell_;
    DeviceCoo coo_;
};

class JdsOperator final : public Operator {
  public:
    JdsOperator(Shape shape, DeviceJds matrix)
        : Operator(shape, matrix.bytes(), matrix.bytes()), matrix_(std::move(matrix)) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        jds_kernel<<<course::blocks_for(shape().rows, kBlock), kBlock, 0, stream>>>(matrix_.view(), x, y);
        CUDA_CHECK_LAUNCH();
    }

    DeviceJds matrix_;
};

}  // namespace

std::unique_ptr<Operator> make_ell(const CsrMatrix& csr, OffsetRule) {
    const EllMatrix ell = EllMatrix::from(csr);
    return std::make_unique<EllOperator>(ell, csr.entries(), DeviceEll(ell));
}

std::unique_ptr<Operator> make_hybrid(const CsrMatrix& csr, OffsetRule) {
    const HybridMatrix hybrid = HybridMatrix::from(csr);
    return std::make_unique<HybridOperator>(hybrid, csr.entries(), DeviceEll(hybrid.ell()),
                                            DeviceCoo(hybrid.coo()));
}

std::unique_ptr<Operator> make_jds(const CsrMatrix& csr, OffsetRule) {
    return std::make_unique<JdsOperator>(csr.shape(), DeviceJds(JdsMatrix::from(csr)));
}

}  // namespace day35
