#include "spmv_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <cusparse.h>

#include <limits>
#include <memory>
#include <type_traits>

#include "common/check/check_cusparse.hpp"
#include "common/device/grid.hpp"

namespace day35 {
namespace {

using course::DeviceBuffer;

constexpr Offset kMost32 = std::numeric_limits<std::int32_t>::max();

// Handles of cuSPARSE's, each with an owner.
struct Destroy {
    void operator()(cusparseHandle_t handle) const { static_cast<void>(cusparseDestroy(handle)); }
    void operator()(cusparseSpMatDescr_t matrix) const { static_cast<void>(cusparseDestroySpMat(matrix)); }
    void operator()(cusparseDnVecDescr_t vector) const { static_cast<void>(cusparseDestroyDnVec(vector)); }
};
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

Owned<cusparseHandle_t> new_handle() {
    cusparseHandle_t handle = nullptr;
    CUSPARSE_CHECK(cusparseCreate(&handle));
    return Owned<cusparseHandle_t>(handle);
}

Owned<cusparseDnVecDescr_t> vector_of(course::DeviceSpan<const float> span) {
    cusparseDnVecDescr_t vector = nullptr;
    CUSPARSE_CHECK(cusparseCreateDnVec(&vector, static_cast<std::int64_t>(span.size()),
                                       const_cast<float*>(span.data()), CUDA_R_32F));
    return Owned<cusparseDnVecDescr_t>(vector);
}

// A matrix of cuSPARSE's, with the arrays that it points to.
struct PeerMatrix {
    DeviceBuffer<std::int32_t> offsets;  // row, column or slice starts, or COO's rows
    DeviceBuffer<Index> cols;            // CSC's rows
    DeviceBuffer<float> values;
    Owned<cusparseSpMatDescr_t> matrix{};
};

PeerMatrix upload_arrays(std::span<const std::int32_t> offsets, std::span<const Index> cols,
                         std::span<const float> values) {
    return {DeviceBuffer<std::int32_t>(offsets), DeviceBuffer<Index>(cols), DeviceBuffer<float>(values)};
}

std::vector<std::int32_t> in_32_bits(std::span<const Offset> offsets) {
    if (offsets.back() > kMost32) {
        throw std::invalid_argument(std::to_string(offsets.back()) +
                                    " places; expected at most 2^31 - 1, with offsets of 32 bits");
    }
    return {offsets.begin(), offsets.end()};
}

PeerMatrix peer_csr(const CsrMatrix& csr) {
    PeerMatrix peer = upload_arrays(in_32_bits(csr.row_start()), csr.cols(), csr.values());
    cusparseSpMatDescr_t matrix = nullptr;
    CUSPARSE_CHECK(cusparseCreateCsr(
        &matrix, csr.shape().rows, csr.shape().cols, csr.entries(), peer.offsets.data(), peer.cols.data(),
        peer.values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    peer.matrix.reset(matrix);
    return peer;
}

PeerMatrix peer_csc(const CsrMatrix& csr) {
    const CscMatrix csc = to_csc(csr);
    PeerMatrix peer = upload_arrays(in_32_bits(csc.col_start), csc.rows, csc.values);
    cusparseSpMatDescr_t matrix = nullptr;
    CUSPARSE_CHECK(cusparseCreateCsc(
        &matrix, csr.shape().rows, csr.shape().cols, csr.entries(), peer.offsets.data(), peer.cols.data(),
        peer.values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    peer.matrix.reset(matrix);
    return peer;
}

PeerMatrix peer_coo(const CsrMatrix& csr) {
    const CooMatrix coo = to_coo(csr);
    PeerMatrix peer = upload_arrays(coo.rows, coo.cols, coo.values);
    cusparseSpMatDescr_t matrix = nullptr;
    CUSPARSE_CHECK(cusparseCreateCoo(&matrix, csr.shape().rows, csr.shape().cols, csr.entries(),
                                     peer.offsets.data(), peer.cols.data(), peer.values.data(),
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    peer.matrix.reset(matrix);
    return peer;
}

PeerMatrix peer_sell(const CsrMatrix& csr) {
    const SellMatrix sell = to_sell(csr, 1);
    PeerMatrix peer = upload_arrays(in_32_bits(sell.slice_start), sell.cols, sell.values);
    cusparseSpMatDescr_t matrix = nullptr;
    CUSPARSE_CHECK(cusparseCreateSlicedEll(
        &matrix, csr.shape().rows, csr.shape().cols, csr.entries(),
        static_cast<std::int64_t>(sell.values.size()), kSliceRows, peer.offsets.data(), peer.cols.data(),
        peer.values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    peer.matrix.reset(matrix);
    return peer;
}

// Everything that a product needs, kept as long as the launch is. The matrix is its own: cuSPARSE
// keeps in it what cusparseSpMV_preprocess found, for one algorithm.
class PeerProduct {
  public:
    PeerProduct(PeerMatrix matrix, cusparseSpMVAlg_t algorithm, course::DeviceSpan<const float> x,
                course::DeviceSpan<float> y)
        : matrix_(std::move(matrix)),
          algorithm_(algorithm),
          handle_(new_handle()),
          x_(vector_of(x)),
          y_(vector_of(y)) {
        std::size_t bytes = 0;
        CUSPARSE_CHECK(cusparseSpMV_bufferSize(handle_.get(), kPlain, &kOne, matrix_.matrix.get(), x_.get(),
                                               &kZero, y_.get(), CUDA_R_32F, algorithm_, &bytes));
        buffer_ = DeviceBuffer<std::byte>(bytes);
        CUSPARSE_CHECK(cusparseSpMV_preprocess(handle_.get(), kPlain, &kOne, matrix_.matrix.get(), x_.get(),
                                               &kZero, y_.get(), CUDA_R_32F, algorithm_, buffer_.data()));
    }

    void launch(cudaStream_t stream) {
        CUSPARSE_CHECK(cusparseSetStream(handle_.get(), stream));
        CUSPARSE_CHECK(cusparseSpMV(handle_.get(), kPlain, &kOne, matrix_.matrix.get(), x_.get(), &kZero,
                                    y_.get(), CUDA_R_32F, algorithm_, buffer_.data()));
    }

  private:
    static constexpr cusparseOperation_t kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    static constexpr float kOne = 1;
    static constexpr float kZero = 0;

    DeviceBuffer<std::byte> buffer_;  // the matrix may point to it: freed after it
    PeerMatrix matrix_;
    cusparseSpMVAlg_t algorithm_;
    Owned<cusparseHandle_t> handle_;
    Owned<cusparseDnVecDescr_t> x_;
    Owned<cusparseDnVecDescr_t> y_;
};

struct PeerFormat {
    const char* name;
    PeerMatrix (*make)(const CsrMatrix&);
    double bytes;  // of the matrix, without padding
    std::vector<std::pair<const char*, cusparseSpMVAlg_t>> algorithms;
};

}  // namespace

std::vector<course::Contestant> cusparse_products(
    const CsrMatrix& csr, course::DeviceSpan<const float> x, course::DeviceSpan<float> y,
    const std::function<course::Work(double matrix_bytes)>& work) {
    const auto entries = static_cast<double>(csr.entries());
    const double rows = csr.shape().rows;
    const double cols = csr.shape().cols;
    const double slices = course::ceil_div(csr.shape().rows, kSliceRows);
    const std::vector<PeerFormat> formats = {
        {"csr",
         peer_csr,
         8 * entries + 4 * (rows + 1),
         {{"", CUSPARSE_SPMV_ALG_DEFAULT},
          {"_alg1", CUSPARSE_SPMV_CSR_ALG1},
          {"_alg2", CUSPARSE_SPMV_CSR_ALG2}}},
        {"csc", peer_csc, 8 * entries + 4 * (cols + 1), {{"", CUSPARSE_SPMV_ALG_DEFAULT}}},
        {"coo",
         peer_coo,
         12 * entries,
         {{"_alg1", CUSPARSE_SPMV_COO_ALG1}, {"_alg2", CUSPARSE_SPMV_COO_ALG2}}},
        {"sell", peer_sell, 8 * entries + 4 * (slices + 1), {{"_alg1", CUSPARSE_SPMV_SELL_ALG1}}}};
    std::vector<course::Contestant> list;
    for (const PeerFormat& format : formats) {
        for (const auto& [suffix, algorithm] : format.algorithms) {
            const auto prepare = [csr, x, y, make = format.make,
                                  algorithm = algorithm](course::Contestant& peer) {
                try {
                    const auto product = std::make_shared<PeerProduct>(make(csr), algorithm, x, y);
                    peer.launch = [product](cudaStream_t stream) { product->launch(stream); };
                } catch (const course::CusparseError& error) {
                    peer.cannot_run = error.what();
                }
            };
            list.push_back({.name = std::string("cusparse_") + format.name + suffix,
                            .role = course::Role::kPeer,
                            .work = work(format.bytes),
                            .prepare = prepare});
        }
    }
    return list;
}

}  // namespace day35

#else

namespace day35 {

std::vector<course::Contestant> cusparse_products(const CsrMatrix&, course::DeviceSpan<const float>,
                                                  course::DeviceSpan<float>,
                                                  const std::function<course::Work(double)>&) {
    return {
        {.name = "cusparse", .role = course::Role::kPeer, .cannot_run = "cuSPARSE is in builds for a GPU"}};
}

}  // namespace day35

#endif
