#include "eight_bits_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <cublasLt.h>

#include <memory>
#include <stdexcept>

#include "common/check/check_cublas.hpp"
#include "common/device/device_buffer.hpp"

namespace day42 {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // as cuBLAS allocates on Hopper

template <auto kDestroy>
struct Destroy {
    template <class T>
    void operator()(T* owned) const {
        static_cast<void>(kDestroy(owned));
    }
};
using Handle = std::unique_ptr<cublasLtContext, Destroy<cublasLtDestroy>>;
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy<cublasLtMatmulPreferenceDestroy>>;

// The library is column-major: a row-major matrix is its transpose.
template <class T>
Layout layout_of(const course::DeviceMatrix<T>& matrix, cudaDataType_t type) {
    cublasLtMatrixLayout_t raw = nullptr;
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&raw, type, matrix.cols(), matrix.rows(),
                                            static_cast<std::int64_t>(matrix.leading_dimension())));
    return Layout(raw);
}

// As column-major matrices: C^T = (B^T)^T A^T.
template <class T>
struct Call {
    static constexpr bool kIntegers = std::is_integral_v<T>;
    static constexpr cudaDataType_t kOperand = kIntegers ? CUDA_R_8I : CUDA_R_8F_E4M3;
    static constexpr cudaDataType_t kSum = kIntegers ? CUDA_R_32I : CUDA_R_32F;

    Call(const Product<T>& wanted, Accumulation accumulation)
        : product(wanted),
          a(layout_of(wanted.a, kOperand)),
          b(layout_of(wanted.b, kOperand)),
          c(layout_of(wanted.c, kSum)) {
        cublasLtHandle_t raw_handle = nullptr;
        CUBLAS_CHECK(cublasLtCreate(&raw_handle));
        handle.reset(raw_handle);
        cublasLtMatmulDesc_t raw_description = nullptr;
        CUBLAS_CHECK(cublasLtMatmulDescCreate(&raw_description,
                                              kIntegers ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F, kSum));
        description.reset(raw_description);
        const cublasOperation_t transpose = CUBLAS_OP_T;
        CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(description.get(), CUBLASLT_MATMUL_DESC_TRANSA,
                                                    &transpose, sizeof transpose));
        if (!kIntegers) {
            const std::int8_t fast = accumulation == Accumulation::kFast ? 1 : 0;
            CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(description.get(), CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                        &fast, sizeof fast));
        }
        cublasLtMatmulPreference_t raw_preference = nullptr;
        CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&raw_preference));
        const Preference preference(raw_preference);
        CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(
            preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace));
        cublasLtMatmulHeuristicResult_t best{};
        int found = 0;
        const cublasStatus_t status =
            cublasLtMatmulAlgoGetHeuristic(handle.get(), description.get(), b.get(), a.get(), c.get(),
                                           c.get(), preference.get(), 1, &best, &found);
        const bool supported = status != CUBLAS_STATUS_NOT_SUPPORTED;
        if (supported) CUBLAS_CHECK(status);
        if (!supported || found == 0)
            throw std::invalid_argument("cublasLt has no kernel for these operands");
        CUBLAS_CHECK(best.state);
        algorithm = best.algo;
    }

    void operator()(cudaStream_t stream) {
        const Sum<T> one = 1;
        const Sum<T> zero = 0;
        CUBLAS_CHECK(cublasLtMatmul(handle.get(), description.get(), &one, product.b.data(), b.get(),
                                    product.a.data(), a.get(), &zero, product.c.data(), c.get(),
                                    product.c.data(), c.get(), &algorithm, workspace.data(), kWorkspace,
                                    stream));
    }

    Product<T> product;
    Layout a, b, c;
    Handle handle;
    Description description;
    cublasLtMatmulAlgo_t algorithm{};
    course::DeviceBuffer<std::byte> workspace{kWorkspace};
};

}  // namespace

std::string why_no_cublaslt() {
    return "";
}

template <class T>
std::function<void(cudaStream_t)> make_cublaslt(const Product<T>& product, Accumulation accumulation) {
    return
        [call = std::make_shared<Call<T>>(product, accumulation)](cudaStream_t stream) { (*call)(stream); };
}

#else

namespace day42 {

std::string why_no_cublaslt() {
    return "cublasLt is in builds for a GPU";
}

template <class T>
std::function<void(cudaStream_t)> make_cublaslt(const Product<T>&, Accumulation) {
    return {};
}

#endif

template std::function<void(cudaStream_t)> make_cublaslt(const Product<std::int8_t>&, Accumulation);
template std::function<void(cudaStream_t)> make_cublaslt(const Product<__nv_fp8_e4m3>&, Accumulation);

}  // namespace day42
