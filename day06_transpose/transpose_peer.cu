#include "transpose_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cstdint>
#include <memory>

#include "common/check/check_cublas.hpp"
#endif

namespace day06 {

course::Contestant cublas_geam(course::DeviceMatrix<const float> in, course::DeviceMatrix<float> out) {
    course::Contestant geam;
    geam.name = "cublas_geam";
    geam.role = course::Role::kPeer;
#ifdef COURSE_HAS_CUDA_LIBRARIES
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    const std::shared_ptr<cublasContext> handle(raw, cublasDestroy);
    geam.launch = [=](cudaStream_t stream) {
        const float one = 1;
        const float zero = 0;
        const auto count = [](std::size_t n) { return static_cast<std::int64_t>(n); };
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        // cuBLAS is column-major: it takes `in` for a cols x rows matrix, and writes the rows x cols matrix that is our `out`.
        CUBLAS_CHECK(cublasSgeam_64(handle.get(), CUBLAS_OP_T, CUBLAS_OP_N, count(in.rows()),
                                    count(in.cols()), &one, in.data(), count(in.leading_dimension()), &zero,
                                    out.data(), count(out.leading_dimension()), out.data(),
                                    count(out.leading_dimension())));
    };
#else
    static_cast<void>(in);
    static_cast<void>(out);
    geam.cannot_run = "cuBLAS is in builds for a GPU";
#endif
    return geam;
}

}  // namespace day06
