// Day 35: y = A x for a sparse matrix A.                                                           PMPP chapter 14
//
//   version          format  what is new                                        kernels in
//   coo_atomic       COO     a thread per entry                                 spmv_coo.cu
//   coo_segmented    COO     runs of a row are summed before they are added
//   csr_scalar       CSR     a thread per row                                   spmv_csr.cu
//   csr_vector       CSR     2 to 32 lanes per row
//   csr_vectorised   CSR     16-byte loads
//   csr_adaptive     CSR     blocks with as many entries, rows as they come     spmv_adaptive.cu
//   csr_merge        CSR     threads with as many steps, rows cut anywhere      spmv_merge.cu
//   ell              ELL     stored by columns                                  spmv_ell.cu
//   hybrid           both    ELL for the many, COO for the long rows
//   jds              JDS     rows sorted by length
//   sell             SELL    ELL for 32 rows at a time                          spmv_sell.cu
//   packed_sell      packed  columns as differences of 1, 2 or 4 bytes
//   auto             -       one of these, by the lengths of the rows           here
//
// Each entry is read once, for two operations: memory decides. 8 bytes an entry for CSR, and what x
// costs: 4 bytes where neighbouring rows share it in the cache, up to 32, a sector, where every
// entry reads another part of it.
//
//   ./course run day35                                    five kinds of matrices: all versions, verified and timed
//   ./course run day35 --matrix file.mtx                  your own matrix: which format wins, and why
#include <cuda_runtime.h>

#include <array>
#include <cmath>

#include "common/check/require.hpp"
#include "spmv.hpp"
#include "spmv_makers.hpp"

namespace day35 {
namespace {

// Places over entries, beyond which a format is refused: it would be filling for the most part.
constexpr double kMostFilling = 8;
constexpr double kFewPlaces = 1 << 20;  // but never where it is small anyway

std::string why_not(const char* format, const RowStatistics& statistics, double filling) {
    const double places = filling * static_cast<double>(statistics.entries);
    if (places <= kFewPlaces || filling <= kMostFilling) return "";
    return "its longest row has " + std::to_string(statistics.longest) + " entries: " + format +
           " would have " + std::to_string(std::llround(places)) + " places for " +
           std::to_string(statistics.entries);
}

std::string why_not_ell(const RowStatistics& statistics) {
    return why_not("ELL", statistics, statistics.ell_filling);
}

std::string why_not_sell(const RowStatistics& statistics) {
    return why_not("SELL", statistics, statistics.sorted_filling);
}

course::Work work(const RowStatistics& statistics) {
    return {.flops = 2 * static_cast<double>(statistics.entries)};
}

class AutoOperator final : public Operator {
  public:
    AutoOperator(std::unique_ptr<Operator> chosen, const std::string& name)
        : Operator(chosen->shape(), chosen->stored_bytes(), chosen->least_bytes(),
                   chosen->choice().empty() ? name : name + ", " + chosen->choice()),
          chosen_(std::move(chosen)) {}

  private:
    void launch(const float* x, float* y, cudaStream_t stream) const override {
        chosen_->multiply(course::DeviceSpan<const float>::from_device_pointer(x, shape().cols),
                          course::DeviceSpan<float>::from_device_pointer(y, shape().rows), stream);
    }

    std::unique_ptr<Operator> chosen_;
};

}  // namespace

// Rows are shared out where no row is much longer than the others and they fill the GPU, or there
// is little to do for each: one lane a row, in slices, where a slice's rows are alike; several
// lanes a row else. Otherwise entries are shared out.
AutoChoice choose(const RowStatistics& rows) {
    constexpr double kLittleFilling = 1.15;
    constexpr Offset kManyLanes = 1 << 17;                   // enough to fill the GPU
    constexpr double kShortRow = 16 * 32 * kPackedElements;  // sixteen steps of a warp with csr_vectorised
    const auto longest = static_cast<double>(rows.longest);
    const bool no_row_is_long = longest <= 2 * rows.mean + 64;
    if (rows.shape.rows >= kManyLanes && no_row_is_long) {
        if (rows.sell_filling <= kLittleFilling) return {"packed_sell", 1};
        if (rows.sorted_filling <= kLittleFilling) return {"packed_sell", kPackedSigma};
    }
    const bool rows_fill_gpu = Offset{rows.shape.rows} * vectorised_lanes(rows.mean) >= kManyLanes;
    if (no_row_is_long && (rows_fill_gpu || rows.mean <= kShortRow)) return {"csr_vectorised"};
    return {"csr_adaptive"};
}

std::unique_ptr<Operator> make_auto(const CsrMatrix& csr, OffsetRule rule) {
    const AutoChoice choice = choose(row_statistics(csr));
    const std::string version = choice.version;
    return std::make_unique<AutoOperator>(version == "packed_sell" ? make_packed_sell_with(csr, choice.sigma)
                                          : version == "csr_vectorised" ? make_csr_vectorised(csr, rule)
                                                                        : make_csr_adaptive(csr, rule),
                                          version);
}

// By itself, packed_sell sorts where that is worth an order of rows.
std::unique_ptr<Operator> make_packed_sell(const CsrMatrix& csr, OffsetRule) {
    const RowStatistics statistics = row_statistics(csr);
    const bool sort = statistics.sell_filling > 1.1 * statistics.sorted_filling;
    return make_packed_sell_with(csr, sort ? kPackedSigma : 1);
}

void Operator::multiply(course::DeviceSpan<const float> x, course::DeviceSpan<float> y,
                        cudaStream_t stream) const {
    const auto expect_size = [&](const char* name, std::size_t size, Index expected) {
        course::require(size == static_cast<std::size_t>(expected), "spmv: ", name, " has ", size,
                        " elements; expected ", expected, ", for a matrix of ", shape_);
    };
    expect_size("x", x.size(), shape_.cols);
    expect_size("y", y.size(), shape_.rows);
    course::require(!overlap(x, y), "spmv: y overlaps x; expected memory of its own");
    if (shape_.rows > 0) launch(x.data(), y.data(), stream);
}

std::span<const Spmv> versions() {
    static const std::array<Spmv, 13> list = {{
        {"coo_atomic", "a thread per entry", make_coo_atomic, work},
        {"coo_segmented", "runs of a row are summed before they are added", make_coo_segmented, work},
        {"csr_scalar", "a thread per row", make_csr_scalar, work},
        {"csr_vector", "2 to 32 lanes per row", make_csr_vector, work},
        {"csr_vectorised", "16-byte loads", make_csr_vectorised, work},
        {"csr_adaptive", "blocks with as many entries, through shared memory", make_csr_adaptive, work},
        {"csr_merge", "threads with as many steps, rows cut anywhere", make_csr_merge, work},
        {"ell", "stored by columns, filled up to the longest row", make_ell, work, why_not_ell},
        {"hybrid", "ELL for the many, COO for the long rows", make_hybrid, work},
        {"jds", "rows sorted by length, nothing filled up", make_jds, work},
        {"sell", "ELL for 32 rows at a time", make_sell, work, why_not_sell},
        {"packed_sell", "columns as differences of 1, 2 or 4 bytes", make_packed_sell, work, why_not_sell},
        {"auto", "one of these, by the lengths of the rows", make_auto, work},
    }};
    return list;
}

}  // namespace day35
