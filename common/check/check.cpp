#include "common/check/check.hpp"

#include <fmt/format.h>

namespace course {

void throw_cuda_error(cudaError_t code, const char* call, const char* file, int line) {
    static_cast<void>(cudaGetLastError());
    throw CudaError(code, fmt::format("{}:{}: {} failed: {} ({})", file, line, call, cudaGetErrorName(code),
                                      cudaGetErrorString(code)));
}

}  // namespace course
