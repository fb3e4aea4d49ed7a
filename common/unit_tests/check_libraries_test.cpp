#include <gtest/gtest.h>

#include <string>

#include "common/check/check_cublas.hpp"
#include "common/check/check_cusparse.hpp"

namespace {

TEST(CheckLibraries, FailuresNameTheCallAndTheStatus) {
    try {
        CUBLAS_CHECK(cublasDestroy(nullptr));
        FAIL() << "no exception";
    } catch (const std::exception& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("cublasDestroy(nullptr)"), std::string::npos) << message;
        EXPECT_NE(message.find("CUBLAS_STATUS_NOT_INITIALIZED"), std::string::npos) << message;
        EXPECT_NE(message.find("check_libraries_test.cpp"), std::string::npos) << message;
    }
    EXPECT_THROW(CUSPARSE_CHECK(cusparseGetVersion(nullptr, nullptr)), std::exception);
}

}  // namespace
