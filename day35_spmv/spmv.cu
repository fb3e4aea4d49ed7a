// Day 35: brings a matrix into each version's format; the list of versions. The kernels and their
// launches are in spmv.cuh and beyond/.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "beyond/balanced.cuh"
#include "beyond/csc.cuh"
#include "beyond/merge_path.cuh"
#include "beyond/segments.cuh"
#include "beyond/sell.cuh"
#include "beyond/sparse_vector.cuh"
#include "beyond/spmspv.hpp"
#include "beyond/vectorised.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "device_csr.hpp"
#include "spmv.cuh"
#include "spmv.hpp"

namespace day35 {
namespace {

using OperatorPtr = std::unique_ptr<Operator>;

OperatorPtr new_operator(Shape shape) {
    return std::make_unique<Operator>(shape);
}

static_assert(kPack == kPackedElements);

// --- COO -----------------------------------------------------------------------------------------

CooView upload(Operator& product, const CooMatrix& coo) {
    return {static_cast<Offset>(coo.rows.size()), product.upload(coo.rows), product.upload(coo.cols),
            product.upload(coo.values)};
}

// An operator of the matrix as COO: launch(matrix, rows, x, y, stream) queues the product.
template <auto kLaunch>
OperatorPtr make_coo(const CsrMatrix& csr, OffsetRule) {
    OperatorPtr product = new_operator(csr.shape());
    const CooView a = upload(*product, to_coo(csr));
    product->launch = [a, rows = csr.shape().rows](const float* x, float* y, cudaStream_t stream) {
        kLaunch(a, rows, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

// --- CSC -----------------------------------------------------------------------------------------

OperatorPtr make_csc_atomic(const CsrMatrix& csr, OffsetRule) {
    const CscMatrix csc = to_csc(csr);
    OperatorPtr product = new_operator(csr.shape());
    const CscView a{csr.shape().cols, product->upload(csc.col_start), product->upload(csc.rows),
                    product->upload(csc.values)};
    product->launch = [a, rows = csr.shape().rows](const float* x, float* y, cudaStream_t stream) {
        launch_csc_atomic(a, rows, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

// --- CSR -----------------------------------------------------------------------------------------

// A copy of `host`, followed by zeros up to a whole number of packs.
template <class T>
course::DeviceBuffer<T> upload_for_packs(std::span<const T> host) {
    const std::size_t size = padded_to_packs(static_cast<Offset>(host.size()));
    course::DeviceBuffer<T> device(size);
    if (size == 0) return device;
    CUDA_CHECK(cudaMemset(device.data() + size - kPack, 0, kPack * sizeof(T)));
    course::copy_host_to_device(device.data(), host.size(), host.data(), host.size(), sizeof(T), nullptr);
    return device;
}

template <class O>
DeviceCsr<O> upload(const CsrMatrix& csr) {
    return {csr.shape(), csr.row_start(), upload_for_packs(csr.cols()), upload_for_packs(csr.values())};
}

// Uploads `csr` with the offsets that `rule` asks for, and makes a version of it.
template <auto kMakeNarrow, auto kMakeWide>
OperatorPtr make_csr(const CsrMatrix& csr, OffsetRule rule) {
    // The offsets that a kernel computes in its last step must not overflow either.
    constexpr Offset kMostNarrow = std::numeric_limits<std::int32_t>::max() - (1 << 16);
    const bool narrow = rule == OffsetRule::kAsNeeded && csr.entries() <= kMostNarrow;
    return narrow ? kMakeNarrow(upload<std::int32_t>(csr), csr.row_start())
                  : kMakeWide(upload<Offset>(csr), csr.row_start());
}

template <class O>
CsrView<O> keep(Operator& product, DeviceCsr<O> matrix) {
    product.add_stored_bytes(matrix.row_start.bytes() +
                             static_cast<std::size_t>(matrix.entries) * (sizeof(Index) + sizeof(float)));
    return {matrix.shape.rows, product.keep(std::move(matrix.row_start)),
            product.keep(std::move(matrix.cols)), product.keep(std::move(matrix.values))};
}

// An operator whose rows have `lanes` lanes each: launch(matrix, lanes, x, y, stream) queues the
// product.
template <class O, class Launch>
OperatorPtr rows_operator(DeviceCsr<O> matrix, int lanes, Launch launch) {
    OperatorPtr product = new_operator(matrix.shape);
    product->set_choice(std::to_string(lanes) + (lanes == 1 ? " lane a row" : " lanes a row"));
    const CsrView<O> a = keep(*product, std::move(matrix));
    product->launch = [a, lanes, launch](const float* x, float* y, cudaStream_t stream) {
        launch(a, lanes, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

template <class O>
double mean_length(const DeviceCsr<O>& matrix) {
    return static_cast<double>(matrix.entries) / std::max(1, matrix.shape.rows);
}

}  // namespace

template <class O>
OperatorPtr csr_scalar(DeviceCsr<O> matrix, std::span<const Offset>) {
    return rows_operator(std::move(matrix), 1,
                         [](const CsrView<O>& a, int, const float* x, float* y, cudaStream_t stream) {
                             launch_csr_scalar(a, x, y, stream);
                         });
}

template <class O>
OperatorPtr csr_vector(DeviceCsr<O> matrix, std::span<const Offset>) {
    const int lanes = lanes_by_mean(mean_length(matrix));
    return rows_operator(std::move(matrix), lanes, launch_csr_vector<O>);
}

template <class O>
OperatorPtr csr_vectorised(DeviceCsr<O> matrix, std::span<const Offset>) {
    const int lanes = lanes_by_mean(mean_length(matrix) / kPack);
    return rows_operator(std::move(matrix), lanes, launch_csr_vectorised<O>);
}

// --- ELL, hybrid, JDS ----------------------------------------------------------------------------

namespace {

EllView upload(Operator& product, const EllMatrix& ell) {
    return {ell.shape.rows, ell.width, product.upload(ell.cols), product.upload(ell.values)};
}

// Bytes of the places without an entry, when each place takes `bytes`.
std::size_t filling_bytes(std::size_t places, Offset entries, double bytes) {
    return static_cast<std::size_t>(static_cast<double>(places - static_cast<std::size_t>(entries)) * bytes);
}

constexpr double kPlaceBytes = sizeof(Index) + sizeof(float);

OperatorPtr make_ell(const CsrMatrix& csr, OffsetRule) {
    const EllMatrix ell = to_ell(csr);
    OperatorPtr product = new_operator(csr.shape());
    const EllView a = upload(*product, ell);
    product->set_filling_bytes(filling_bytes(ell.cols.size(), csr.entries(), kPlaceBytes));
    product->set_choice("width " + std::to_string(ell.width));
    product->launch = [a](const float* x, float* y, cudaStream_t stream) {
        launch_ell(a, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

OperatorPtr make_hybrid(const CsrMatrix& csr, OffsetRule) {
    const HybridMatrix hybrid = to_hybrid(csr);
    const std::size_t in_coo = hybrid.coo.cols.size();
    OperatorPtr product = new_operator(csr.shape());
    const EllView ell = upload(*product, hybrid.ell);
    const CooView coo = upload(*product, hybrid.coo);
    product->set_filling_bytes(filling_bytes(hybrid.ell.cols.size() + in_coo, csr.entries(), kPlaceBytes));
    product->set_choice("width " + std::to_string(ell.width) + ", " + std::to_string(in_coo) +
                        " entries in COO");
    product->launch = [ell, coo](const float* x, float* y, cudaStream_t stream) {
        launch_hybrid(ell, coo, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

OperatorPtr make_jds(const CsrMatrix& csr, OffsetRule) {
    const JdsMatrix jds = to_jds(csr);
    OperatorPtr product = new_operator(csr.shape());
    const JdsView a{csr.shape().rows,           static_cast<Index>(jds.diagonal_start.size() - 1),
                    product->upload(jds.order), product->upload(jds.diagonal_start),
                    product->upload(jds.cols),  product->upload(jds.values)};
    product->launch = [a](const float* x, float* y, cudaStream_t stream) {
        launch_jds(a, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

// --- SELL ----------------------------------------------------------------------------------------

OperatorPtr make_sell(const CsrMatrix& csr, OffsetRule) {
    const SellMatrix sell = to_sell(csr, kDefaultSigma);
    OperatorPtr product = new_operator(csr.shape());
    const SellView a{csr.shape().rows, product->upload(sell.order), product->upload(sell.slice_start),
                     product->upload(sell.cols), product->upload(sell.values)};
    product->set_filling_bytes(filling_bytes(sell.cols.size(), csr.entries(), kPlaceBytes));
    product->launch = [a](const float* x, float* y, cudaStream_t stream) {
        launch_sell(a, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

OperatorPtr make_packed_sell_with(const CsrMatrix& csr, Index sigma) {
    const PackedSellMatrix packed = to_packed_sell(csr, sigma);
    OperatorPtr product = new_operator(csr.shape());
    const PackedSellView a{csr.shape().rows, product->upload(packed.order), product->upload(packed.slices),
                           product->upload(packed.codes), product->upload(packed.values)};
    // A place takes as many bytes as it does on average over the matrix.
    const std::size_t places = packed.values.size();
    const double place_bytes = sizeof(float) + static_cast<double>(packed.codes.size()) /
                                                   static_cast<double>(std::max<std::size_t>(1, places));
    product->set_filling_bytes(filling_bytes(places, csr.entries(), place_bytes));
    char choice[64];
    std::snprintf(choice, sizeof(choice), "sigma %d, %.2f bytes a place", static_cast<int>(sigma),
                  place_bytes);
    product->set_choice(choice);
    product->launch = [a](const float* x, float* y, cudaStream_t stream) {
        launch_packed_sell(a, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

// By default, packed_sell sorts only if the padding that this removes is larger than an array of
// row numbers.
OperatorPtr make_packed_sell(const CsrMatrix& csr, OffsetRule) {
    const RowStatistics statistics = row_statistics(csr);
    const bool sort = statistics.sell_filling > 1.1 * statistics.sorted_filling;
    return make_packed_sell_with(csr, sort ? kPackedSigma : 1);
}

// --- Adaptive CSR --------------------------------------------------------------------------------

struct Pieces {
    std::vector<Piece> pieces;  // and one more, which starts where the entries end
    std::vector<LongRow> long_rows;
    Index parts = 0;  // of all long rows
};

// At most `tile` entries per piece.
Pieces cut_into_pieces(std::span<const Offset> row_start, int tile) {
    const auto rows = static_cast<Index>(row_start.size() - 1);
    // How far a block that starts with this entry gets; its packs start at multiples of four.
    const auto reach = [tile](Offset begin) { return begin / kPack * kPack + tile; };
    Pieces cut;
    for (Index row = 0; row < rows;) {
        const Offset begin = row_start[row];
        Index end = row;
        while (end < rows && end - row < tile && row_start[end + 1] <= reach(begin))
            ++end;
        if (end > row) {
            cut.pieces.push_back({begin, row, end - row});
            row = end;
            continue;
        }
        const auto which = static_cast<Index>(cut.long_rows.size());
        Index parts = 0;
        for (Offset part = begin; part < row_start[row + 1]; part = reach(part))
            cut.pieces.push_back({part, which, -parts++});
        cut.long_rows.push_back({row, cut.parts, parts});
        cut.parts += parts;
        ++row;
    }
    cut.pieces.push_back({row_start.back(), rows, 0});
    return cut;
}

// Fewer entries for each block if there would not be enough blocks for all multiprocessors.
int adaptive_tile(Offset entries) {
    constexpr Offset kBlocksOnEach = 8;
    const Offset share = entries / (kBlocksOnEach * course::multiprocessors());
    return static_cast<int>(std::clamp<Offset>(share, kAdaptiveTile / 4, kAdaptiveTile));
}

}  // namespace

template <class O>
OperatorPtr csr_adaptive(DeviceCsr<O> matrix, std::span<const Offset> row_start) {
    const Pieces cut = cut_into_pieces(row_start, adaptive_tile(matrix.entries));
    const auto blocks = static_cast<unsigned>(cut.pieces.size() - 1);
    OperatorPtr product = new_operator(matrix.shape);
    const CsrView<O> a = keep(*product, std::move(matrix));
    const Piece* const pieces = product->upload(cut.pieces);
    product->set_filling_bytes(cut.pieces.size() * sizeof(Piece));
    course::DeviceBuffer<unsigned> arrived(cut.long_rows.size());
    CUDA_CHECK(cudaMemset(arrived.data(), 0, arrived.bytes()));
    const LongRows long_rows = {product->keep(course::DeviceBuffer<LongRow>(std::span(cut.long_rows))),
                                product->keep(std::move(arrived)),
                                product->keep(course::DeviceBuffer<float>(cut.parts))};
    product->set_choice(std::to_string(blocks) + " pieces");
    product->launch = [=](const float* x, float* y, cudaStream_t stream) {
        launch_csr_adaptive(a, pieces, blocks, long_rows, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

// --- Merge path ----------------------------------------------------------------------------------

template <class O>
OperatorPtr csr_merge(DeviceCsr<O> matrix, std::span<const Offset> row_start) {
    const Offset rows = matrix.shape.rows;
    const Offset entries = matrix.entries;
    std::vector<Index> starts;  // the row in which each block starts, and in which the last one ends
    for (Offset step = 0; step < rows + entries; step += kMergeTile)
        starts.push_back(
            static_cast<Index>(rows_passed([&](Offset i) { return row_start[i + 1]; }, rows, entries, step)));
    starts.push_back(static_cast<Index>(rows));
    const auto blocks = static_cast<unsigned>(starts.size() - 1);
    OperatorPtr product = new_operator(matrix.shape);
    const CsrView<O> a = keep(*product, std::move(matrix));
    const Index* const tile_rows = product->upload(starts);
    product->set_filling_bytes(starts.size() * sizeof(Index));
    float* const carries = product->keep(course::DeviceBuffer<float>(blocks));
    product->launch = [=](const float* x, float* y, cudaStream_t stream) {
        launch_csr_merge(a, entries, tile_rows, blocks, carries, x, y, stream);
        CUDA_CHECK_LAUNCH();
    };
    return product;
}

template OperatorPtr csr_scalar<Offset>(DeviceCsr<Offset>, std::span<const Offset>);
template OperatorPtr csr_vector<Offset>(DeviceCsr<Offset>, std::span<const Offset>);
template OperatorPtr csr_vectorised<Offset>(DeviceCsr<Offset>, std::span<const Offset>);
template OperatorPtr csr_adaptive<Offset>(DeviceCsr<Offset>, std::span<const Offset>);
template OperatorPtr csr_merge<Offset>(DeviceCsr<Offset>, std::span<const Offset>);

// --- Choosing ------------------------------------------------------------------------------------

// Rows are distributed if no row is much longer than the others and they fill the GPU, or if each
// has little work: one lane per row, in slices, if a slice's rows are alike, otherwise several
// lanes per row. In all other cases entries are distributed, from 2^20 to 2^23 of them by COO.
// After 192 matrices on an H100, of the kinds of families(). With more entries the 12 bytes for
// each count: on an H200, csr_adaptive, which reads 8, is as fast with 9.7 million (docs/measured).
AutoChoice choose(const RowStatistics& rows) {
    constexpr double kLittleFilling = 1.15;
    constexpr Offset kManyRows = 1 << 17;         // a lane for each fills the GPU
    constexpr Offset kManyLanes = 1 << 14;        // enough to hide most of the latency
    constexpr double kShortRow = 4 * 32 * kPack;  // four steps of a warp with csr_vectorised
    constexpr Offset kManyEntries = 1 << 20;
    constexpr Offset kTooManyEntries = 1 << 23;
    const auto longest = static_cast<double>(rows.longest);
    if (longest > 2 * rows.mean + 64) {
        const bool coo = rows.entries >= kManyEntries && rows.entries < kTooManyEntries;
        return {coo ? "coo_segmented" : "csr_adaptive"};
    }
    if (rows.shape.rows >= kManyRows) {
        if (rows.sell_filling <= kLittleFilling) return {"packed_sell", 1};
        if (rows.sorted_filling <= kLittleFilling) return {"packed_sell", kPackedSigma};
    }
    const bool rows_fill_gpu = Offset{rows.shape.rows} * lanes_by_mean(rows.mean / kPack) >= kManyLanes;
    return {rows_fill_gpu || rows.mean <= kShortRow ? "csr_vectorised" : "csr_adaptive"};
}

namespace {

constexpr Maker make_coo_atomic = make_coo<launch_coo_atomic>;
constexpr Maker make_coo_segmented = make_coo<launch_coo_segmented>;
constexpr Maker make_csr_scalar = make_csr<csr_scalar<std::int32_t>, csr_scalar<Offset>>;
constexpr Maker make_csr_vector = make_csr<csr_vector<std::int32_t>, csr_vector<Offset>>;
constexpr Maker make_csr_vectorised = make_csr<csr_vectorised<std::int32_t>, csr_vectorised<Offset>>;
constexpr Maker make_csr_adaptive = make_csr<csr_adaptive<std::int32_t>, csr_adaptive<Offset>>;
constexpr Maker make_csr_merge = make_csr<csr_merge<std::int32_t>, csr_merge<Offset>>;

OperatorPtr make_auto(const CsrMatrix& csr, OffsetRule rule) {
    const AutoChoice choice = choose(row_statistics(csr));
    const std::string version = choice.version;
    OperatorPtr product = version == "packed_sell"      ? make_packed_sell_with(csr, choice.sigma)
                          : version == "csr_vectorised" ? make_csr_vectorised(csr, rule)
                          : version == "coo_segmented"  ? make_coo_segmented(csr, rule)
                                                        : make_csr_adaptive(csr, rule);
    product->set_choice(version + ", " + product->choice());
    return product;
}

// A format is rejected if its places are mostly padding, unless it is small anyway.
std::string why_not(const char* format, const RowStatistics& statistics, double filling) {
    constexpr double kMostFilling = 8;  // places per entry
    constexpr double kFewPlaces = 1 << 20;
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

}  // namespace

std::span<const Spmv> versions() {
    static const std::array<Spmv, 14> list = {{
        {"coo_atomic", "a thread per entry", make_coo_atomic, work},
        {"coo_segmented", "runs of a row are summed before they are added", make_coo_segmented, work},
        {"csc_atomic", "a thread per column", make_csc_atomic, work},
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

// --- Products with a sparse vector (beyond/spmspv.hpp) -------------------------------------------

namespace {

using course::DeviceBuffer;
using ProductPtr = std::unique_ptr<SparseProduct>;

template <class T>
DeviceBuffer<T> zeros(Offset size) {
    DeviceBuffer<T> buffer(static_cast<std::size_t>(size));
    if (size > 0) CUDA_CHECK(cudaMemset(buffer.data(), 0, buffer.bytes()));
    return buffer;
}

// --- x made dense --------------------------------------------------------------------------------

ProductPtr make_dense_x(const CsrMatrix& csr) {
    struct State {
        std::unique_ptr<Operator> matrix;
        DeviceBuffer<float> x;
    };
    const Spmv& version = course::find_version(versions(), "auto");
    const auto state =
        std::make_shared<State>(State{version.launcher(csr, OffsetRule::kAsNeeded),
                                      DeviceBuffer<float>(static_cast<std::size_t>(csr.shape().cols))});
    const Shape shape = csr.shape();
    return std::make_unique<SparseProduct>(
        shape, false, [=](const SparseXView& x, const SparseYView& out, cudaStream_t stream) {
            launch_scatter_x(x, shape.cols, state->x.data(), stream);
            CUDA_CHECK_LAUNCH();
            const auto rows = static_cast<std::size_t>(shape.rows);
            state->matrix->multiply(state->x.span(),
                                    course::DeviceSpan<float>::from_device_pointer(out.values, rows), stream);
        });
}

// --- Columns -------------------------------------------------------------------------------------

// A CSC matrix on the device, and how many lanes suit its columns.
struct DeviceCsc {
    explicit DeviceCsc(const CsrMatrix& csr) : DeviceCsc(csr.shape(), to_csc(csr)) {}
    DeviceCsc(Shape a_shape, const CscMatrix& csc)
        : shape(a_shape),
          col_start(std::span(csc.col_start)),
          rows(std::span(csc.rows)),
          values(std::span(csc.values)),
          lanes(lanes_by_mean(static_cast<double>(csc.rows.size()) / std::max(1, a_shape.cols))) {}

    CscView view() const { return {shape.cols, col_start.data(), rows.data(), values.data()}; }

    Shape shape;
    DeviceBuffer<Offset> col_start;
    DeviceBuffer<Index> rows;
    DeviceBuffer<float> values;
    int lanes;
};

ProductPtr make_columns(const CsrMatrix& csr) {
    const auto matrix = std::make_shared<const DeviceCsc>(csr);
    return std::make_unique<SparseProduct>(
        csr.shape(), false, [=](const SparseXView& x, const SparseYView& out, cudaStream_t stream) {
            launch_columns(matrix->view(), x, matrix->shape.rows, out.values, stream);
            CUDA_CHECK_LAUNCH();
        });
}

ProductPtr make_column_lanes(const CsrMatrix& csr) {
    const auto matrix = std::make_shared<const DeviceCsc>(csr);
    return std::make_unique<SparseProduct>(
        csr.shape(), false, [=](const SparseXView& x, const SparseYView& out, cudaStream_t stream) {
            launch_column_lanes(matrix->view(), x, matrix->lanes, matrix->shape.rows, out.values, stream);
            CUDA_CHECK_LAUNCH();
        });
}

ProductPtr make_sparse_y(const CsrMatrix& csr) {
    struct State {
        DeviceCsc matrix;
        DeviceBuffer<float> sums;
        DeviceBuffer<unsigned> marks;
        DeviceBuffer<Index> counts;
    };
    const Index rows = csr.shape().rows;
    const Index words = words_of(rows);
    const auto state =
        std::make_shared<State>(State{DeviceCsc(csr), zeros<float>(rows), zeros<unsigned>(words),
                                      zeros<Index>(course::ceil_div<Offset>(words, kWarpSize))});
    return std::make_unique<SparseProduct>(
        csr.shape(), true, [=](const SparseXView& x, const SparseYView& out, cudaStream_t stream) {
            const MarkedSums sums{rows, state->sums.data(), state->marks.data(), state->counts.data()};
            launch_sparse_y(state->matrix.view(), x, state->matrix.lanes, sums, out, stream);
            CUDA_CHECK_LAUNCH();
        });
}

// --- Work ----------------------------------------------------------------------------------------

double least_read(const SparseWork& work) {
    return 8 * (static_cast<double>(work.x_entries) + static_cast<double>(work.met_entries));
}

course::Work dense_work(const SparseWork& work) {
    const double written = sizeof(float) * static_cast<double>(work.rows);
    return {.bytes = least_read(work) + written,
            .written = written,
            .flops = 2 * static_cast<double>(work.met_entries)};
}

course::Work sparse_work(const SparseWork& work) {
    const double written = 8 * static_cast<double>(work.met_rows);
    return {.bytes = least_read(work) + written,
            .written = written,
            .flops = 2 * static_cast<double>(work.met_entries)};
}

void require_size(const char* name, std::size_t size, std::size_t expected, Shape shape) {
    course::require(size == expected, "spmspv: ", name, " has ", size, " elements; expected ", expected,
                    ", for a matrix of ", shape);
}

}  // namespace

std::span<const Spmspv> sparse_vector_versions() {
    static const std::array<Spmspv, 4> list = {{
        {"dense_x", "x is made dense, then multiplied as before", make_dense_x, dense_work},
        {"columns", "a thread per entry of x", make_columns, dense_work},
        {"column_lanes", "2 to 32 lanes per entry of x", make_column_lanes, dense_work},
        {"sparse_y", "y is sparse, too: count, scan, fill", make_sparse_y, sparse_work},
    }};
    return list;
}

SparseXView SparseProduct::checked(const SparseX& x) const {
    course::require(x.cols.size() == x.values.size(), "spmspv: x has ", x.cols.size(), " columns and ",
                    x.values.size(), " values; expected as many of both");
    course::require(shape_.cols > 0 || x.cols.size() == 0, "spmspv: x has ", x.cols.size(),
                    " entries; expected 0, for a matrix of ", shape_);
    return {static_cast<Offset>(x.cols.size()), x.cols.data(), x.values.data()};
}

void SparseProduct::multiply(const SparseX& x, course::DeviceSpan<float> y, cudaStream_t stream) const {
    course::require(!has_sparse_y_,
                    "spmspv: y is dense; expected rows, values and a count, for a version "
                    "whose result is sparse");
    const SparseXView view = checked(x);
    require_size("y", y.size(), static_cast<std::size_t>(shape_.rows), shape_);
    course::require(!overlap(x.values, y), "spmspv: y overlaps the values of x; expected memory of its own");
    if (shape_.rows > 0) launch_(view, {nullptr, y.data(), nullptr}, stream);
}

void SparseProduct::multiply(const SparseX& x, const SparseY& y, cudaStream_t stream) const {
    course::require(has_sparse_y_, "spmspv: y is sparse; expected ", shape_.rows,
                    " floats, for a version whose result is dense");
    const SparseXView view = checked(x);
    require_size("y.rows", y.rows.size(), static_cast<std::size_t>(shape_.rows), shape_);
    require_size("y.values", y.values.size(), static_cast<std::size_t>(shape_.rows), shape_);
    require_size("y.count", y.count.size(), 1, shape_);
    course::require(!overlap(x.values, y.values),
                    "spmspv: y.values overlaps the values of x; expected "
                    "memory of its own");
    course::require(!overlap(x.cols, y.rows) && !overlap(x.cols, y.count) && !overlap(y.rows, y.count),
                    "spmspv: y.rows or y.count overlaps the columns of x or each other; expected memory of "
                    "its own");
    launch_(view, {y.rows.data(), y.values.data(), y.count.data()}, stream);
}

}  // namespace day35
