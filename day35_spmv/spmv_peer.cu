#include "spmv_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <cusparse.h>

#include <limits>
#include <memory>

#include "common/check_cusparse.hpp"
#include "device_matrix.hpp"

namespace day35 {
namespace {

using course::DeviceBuffer;

constexpr Offset kMost32 = std::numeric_limits<std::int32_t>::max();

// A matrix of cuSPARSE's, with the arrays that it points to.
struct PeerMatrix {
    DeviceBuffer<std::int32_t> offsets;  // row or slice starts, or COO's rows
    DeviceBuffer<Index> cols;
    DeviceBuffer<float> values;
    cusparseSpMatDescr_t matrix = nullptr;

    PeerMatrix(std::span<const std::int32_t> offsets_, std::span<const Index> cols_,
               std::span<const float> values_)
        : offsets(offsets_), cols(cols_), values(values_) {}
    PeerMatrix(const PeerMatrix&) = delete;
    PeerMatrix& operator=(const PeerMatrix&) = delete;
    ~PeerMatrix() { static_cast<void>(cusparseDestroySpMat(matrix)); }
};

std::vector<std::int32_t> in_32_bits(std::span<const Offset> offsets) {
    return {offsets.begin(), offsets.end()};
}

std::shared_ptr<PeerMatrix> peer_csr(const CsrMatrix& csr) {
    auto peer = std::make_shared<PeerMatrix>(in_32_bits(csr.row_start()), csr.cols(), csr.values());
    CUSPARSE_CHECK(cusparseCreateCsr(&peer->matrix, csr.shape().rows, csr.shape().cols, csr.entries(),
                                     peer->offsets.data(), peer->cols.data(), peer->values.data(),
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                     CUDA_R_32F));
    return peer;
}

std::shared_ptr<PeerMatrix> peer_coo(const CsrMatrix& csr) {
    const CooMatrix coo = CooMatrix::from(csr);
    auto peer = std::make_shared<PeerMatrix>(coo.rows(), coo.cols(), coo.values());
    CUSPARSE_CHECK(cusparseCreateCoo(&peer->matrix, csr.shape().rows, csr.shape().cols, csr.entries(),
                                     peer->offsets.data(), peer->cols.data(), peer->values.data(),
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    return peer;
}

std::shared_ptr<PeerMatrix> peer_sell(const CsrMatrix& csr) {
    const SellMatrix sell = SellMatrix::from(csr, 1);
    auto peer = std::make_shared<PeerMatrix>(in_32_bits(sell.slice_start()), sell.cols(), sell.values());
    CUSPARSE_CHECK(cusparseCreateSlicedEll(
        &peer->matrix, csr.shape().rows, csr.shape().cols, csr.entries(),
        static_cast<std::int64_t>(sell.values().size()), kSliceRows, peer->offsets.data(), peer->cols.data(),
        peer->values.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    return peer;
}

cusparseDnVecDescr_t vector_of(course::DeviceSpan<const float> span) {
    cusparseDnVecDescr_t vector = nullptr;
    CUSPARSE_CHECK(cusparseCreateDnVec(&vector, static_cast<std::int64_t>(span.size()),
                                       const_cast<float*>(span.data()), CUDA_R_32F));
    return vector;
}

// Everything that a product needs, kept as long as the launch is.
struct PeerProduct {
    std::shared_ptr<PeerMatrix> matrix;
    cusparseSpMVAlg_t algorithm;
    cusparseHandle_t handle = nullptr;
    cusparseDnVecDescr_t x = nullptr;
    cusparseDnVecDescr_t y = nullptr;
    DeviceBuffer<std::byte> buffer;

    PeerProduct(std::shared_ptr<PeerMatrix> matrix_, cusparseSpMVAlg_t algorithm_,
                course::DeviceSpan<const float> x_, course::DeviceSpan<float> y_)
        : matrix(std::move(matrix_)), algorithm(algorithm_) {
        CUSPARSE_CHECK(cusparseCreate(&handle));
        x = vector_of(x_);
        y = vector_of(y_);
        const float one = 1;
        const float zero = 0;
        std::size_t bytes = 0;
        CUSPARSE_CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix->matrix,
                                               x, &zero, y, CUDA_R_32F, algorithm, &bytes));
        buffer = DeviceBuffer<std::byte>(bytes);
        CUSPARSE_CHECK(cusparseSpMV_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix->matrix,
                                               x, &zero, y, CUDA_R_32F, algorithm, buffer.data()));
    }
    PeerProduct(const PeerProduct&) = delete;
    PeerProduct& operator=(const PeerProduct&) = delete;
    ~PeerProduct() {
        static_cast<void>(cusparseDestroyDnVec(x));
        static_cast<void>(cusparseDestroyDnVec(y));
        static_cast<void>(cusparseDestroy(handle));
    }

    void launch(cudaStream_t stream) {
        const float one = 1;
        const float zero = 0;
        CUSPARSE_CHECK(cusparseSetStream(handle, stream));
        CUSPARSE_CHECK(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix->matrix, x, &zero,
                                    y, CUDA_R_32F, algorithm, buffer.data()));
    }
};

}  // namespace

std::vector<course::Contestant> cusparse_products(const CsrMatrix& csr, course::DeviceSpan<const float> x,
                                                  course::DeviceSpan<float> y) {
    std::vector<course::Contestant> list;
    const auto add = [&](const char* name, const std::function<std::shared_ptr<PeerMatrix>()>& make,
                         std::initializer_list<std::pair<const char*, cusparseSpMVAlg_t>> algorithms) {
        std::shared_ptr<PeerMatrix> matrix;
        for (const auto& [suffix, algorithm] : algorithms) {
            course::Contestant peer{.name = std::string("cusparse_") + name + suffix,
                                    .role = course::Role::kPeer};
            try {
                if (csr.entries() > kMost32) {
                    peer.cannot_run = "made here for up to 2^31 entries";
                } else {
                    if (!matrix) matrix = make();
                    const auto product = std::make_shared<PeerProduct>(matrix, algorithm, x, y);
                    peer.launch = [product](cudaStream_t stream) { product->launch(stream); };
                }
            } catch (const std::exception& error) {
                peer.cannot_run = error.what();
            }
            list.push_back(std::move(peer));
        }
    };
    add("csr", [&] { return peer_csr(csr); },
        {{"", CUSPARSE_SPMV_ALG_DEFAULT},
         {"_alg1", CUSPARSE_SPMV_CSR_ALG1},
         {"_alg2", CUSPARSE_SPMV_CSR_ALG2}});
    add("coo", [&] { return peer_coo(csr); },
        {{"_alg1", CUSPARSE_SPMV_COO_ALG1}, {"_alg2", CUSPARSE_SPMV_COO_ALG2}});
    add("sell", [&] { return peer_sell(csr); }, {{"_alg1", CUSPARSE_SPMV_SELL_ALG1}});
    return list;
}

}  // namespace day35

#else

namespace day35 {

std::vector<course::Contestant> cusparse_products(const CsrMatrix&, course::DeviceSpan<const float>,
                                                  course::DeviceSpan<float>) {
    return {
        {.name = "cusparse", .role = course::Role::kPeer, .cannot_run = "cuSPARSE is in builds for a GPU"}};
}

}  // namespace day35

#endif
