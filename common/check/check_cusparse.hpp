// CUSPARSE_CHECK(call): CUDA_CHECK for cuSPARSE. A header of its own, so that only code that
// uses cuSPARSE needs it.
#pragma once

#include <cusparse.h>

#include <stdexcept>
#include <string>

namespace course {

class CusparseError : public std::runtime_error {
  public:
    CusparseError(cusparseStatus_t code, const std::string& message)
        : std::runtime_error(message), code_(code) {}

    cusparseStatus_t code() const { return code_; }

  private:
    cusparseStatus_t code_;
};

inline void check_cusparse(cusparseStatus_t code, const char* call, const char* file, int line) {
    if (code == CUSPARSE_STATUS_SUCCESS) return;
    throw CusparseError(code, std::string(file) + ":" + std::to_string(line) + ": " + call + " failed: " +
                                  cusparseGetErrorName(code) + " (" + cusparseGetErrorString(code) + ")");
}

}  // namespace course

#define CUSPARSE_CHECK(...) ::course::check_cusparse((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
