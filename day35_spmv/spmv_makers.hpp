// What makes the operators of each version; the files of the kernels define them, spmv.cu lists
// them.
#pragma once

#include <limits>
#include <memory>
#include <span>

#include "device_formats.hpp"
#include "spmv.hpp"

namespace day35 {

std::unique_ptr<Operator> make_coo_atomic(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_coo_segmented(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_csr_scalar(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_csr_vector(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_csr_vectorised(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_csr_adaptive(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_csr_merge(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_ell(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_hybrid(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_jds(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_sell(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_packed_sell(const CsrMatrix& csr, OffsetRule rule);
std::unique_ptr<Operator> make_auto(const CsrMatrix& csr, OffsetRule rule);

// What `auto` takes for such rows.
struct AutoChoice {
    const char* version;  // packed_sell, csr_vectorised or csr_adaptive
    Index sigma = 1;      // of packed_sell
};
AutoChoice choose(const RowStatistics& rows);

// Lanes that csr_vectorised takes for a row, where rows have `mean` entries on average.
int vectorised_lanes(double mean);

std::unique_ptr<Operator> make_packed_sell_with(const CsrMatrix& csr, Index sigma);

// The CSR versions from a matrix that is on the device already, for one that the host need not
// hold. `row_start` is read during the call. O: std::int32_t or Offset.
template <class O>
std::unique_ptr<Operator> csr_scalar(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_vector(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_vectorised(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_adaptive(DeviceCsr<O> matrix, std::span<const Offset> row_start);
template <class O>
std::unique_ptr<Operator> csr_merge(DeviceCsr<O> matrix, std::span<const Offset> row_start);

// 32-bit offsets as long as what a kernel adds to one in its last step is counted too.
inline constexpr Offset kMostNarrow = std::numeric_limits<std::int32_t>::max() - (1 << 16);

// Uploads `csr` with the offsets that `rule` asks for, and makes one of the above of it.
template <auto kNarrow, auto kWide>
std::unique_ptr<Operator> upload_csr(const CsrMatrix& csr, OffsetRule rule) {
    const bool narrow = rule == OffsetRule::kAsNeeded && csr.entries() <= kMostNarrow;
    return narrow ? kNarrow(DeviceCsr<std::int32_t>(csr), csr.row_start())
                  : kWide(DeviceCsr<Offset>(csr), csr.row_start());
}

// y[rows[i]] += sums[i], `rows` ascending: a segmented sum, whose few atomics keep apart what two
// warps add to one row. For the versions that cut a row into pieces; spmv_coo.cu.
void launch_add_carries(const Index* rows, const float* sums, Offset count, float* y, cudaStream_t stream);
// y += A x for a sorted COO matrix, the same way; for the hybrid.
void launch_add_coo(const CooView& coo, const float* x, float* y, cudaStream_t stream);

}  // namespace day35
