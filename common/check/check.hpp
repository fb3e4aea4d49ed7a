// Every CUDA call can fail, and an unchecked failure shows up later, in another place. So each
// call is wrapped:
//
//     CUDA_CHECK(cudaMalloc(&pointer, bytes));
//     kernel<<<grid, block, 0, stream>>>(arguments);
//     CUDA_CHECK_LAUNCH();
//
// A failed call throws CudaError: the text of the call, the error's name and meaning, file and
// line. check_cublas.hpp and check_cusparse.hpp have the same for the libraries.
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

// Throws CudaError, after clearing the runtime's "last error". Otherwise CUDA_CHECK_LAUNCH() would
// report this error for the next launch.
[[noreturn]] inline void throw_cuda_error(cudaError_t code, const char* call, const char* file, int line) {
    static_cast<void>(cudaGetLastError());
    throw CudaError(code, std::string(file) + ":" + std::to_string(line) + ": " + call +
                              " failed: " + cudaGetErrorName(code) + " (" + cudaGetErrorString(code) + ")");
}

inline void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
    if (code != cudaSuccess) throw_cuda_error(code, call, file, line);
}

}  // namespace course

// These are macros because a function cannot access the text and the source location of the call.
#define CUDA_CHECK(...) ::course::check_cuda((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Right after a launch: checks that the launch was accepted. An error while the kernel runs is
// reported by the next call that waits for the kernel.
#define CUDA_CHECK_LAUNCH() ::course::check_cuda(cudaGetLastError(), "kernel launch", __FILE__, __LINE__)
