// Every CUDA call can fail, and a failure that is not checked shows up later, somewhere else. So
// each call is wrapped:
//
//     CUDA_CHECK(cudaMalloc(&pointer, bytes));
//     kernel<<<grid, block, 0, stream>>>(arguments);
//     CUDA_CHECK_LAUNCH();
//
// A failed call throws CudaError: the text of the call, the error's name and meaning, file and
// line. Twins for the libraries are in check_cublas.hpp and check_cusparse.hpp.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace course {

class CudaError : public std::runtime_error {
  public:
    CudaError(cudaError_t code, const std::string& message) : std::runtime_error(message), code_(code) {}

    cudaError_t code() const { return code_; }

  private:
    cudaError_t code_;
};

// Throws CudaError, and clears the runtime's "last error" first: otherwise the next, innocent
// launch would be blamed.
[[noreturn]] void throw_cuda_error(cudaError_t code, const char* call, const char* file, int line);

inline void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
    if (code != cudaSuccess) throw_cuda_error(code, call, file, line);
}

}  // namespace course

// Macros, because only they know the text of the call and where it stands.
#define CUDA_CHECK(...) ::course::check_cuda((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Right after a launch: checks that the launch was accepted. What goes wrong while the kernel
// runs is reported by the next call that waits for it.
#define CUDA_CHECK_LAUNCH() ::course::check_cuda(cudaGetLastError(), "kernel launch", __FILE__, __LINE__)
