// CUBLAS_CHECK(call): CUDA_CHECK for cuBLAS. A header of its own, so that only code that uses
// cuBLAS needs it.
#pragma once

#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace course {

class CublasError : public std::runtime_error {
  public:
    CublasError(cublasStatus_t code, const std::string& message) : std::runtime_error(message), code_(code) {}

    cublasStatus_t code() const { return code_; }

  private:
    cublasStatus_t code_;
};

inline void check_cublas(cublasStatus_t code, const char* call, const char* file, int line) {
    if (code == CUBLAS_STATUS_SUCCESS) return;
    throw CublasError(code, std::string(file) + ":" + std::to_string(line) + ": " + call + " failed: " +
                                cublasGetStatusName(code) + " (" + cublasGetStatusString(code) + ")");
}

}  // namespace course

#define CUBLAS_CHECK(...) ::course::check_cublas((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
