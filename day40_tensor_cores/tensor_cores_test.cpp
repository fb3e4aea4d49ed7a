// Every version against the reference: the tests are those of common/test/half_matmul_test.hpp.
#include "tensor_cores.hpp"

#include "common/test/half_matmul_test.hpp"

namespace course::half_matmul {

const char* const kTopic = "tensor_cores";

bool loads_through_tma(const std::string&) {
    return false;
}

bool stores_through_tma(const std::string&) {
    return false;
}

INSTANTIATE_TEST_SUITE_P(TensorCores, VersionTest, each_of(day40::versions()), VersionName());
INSTANTIATE_TEST_SUITE_P(TensorCores, LargeShapes, each_of(day40::versions()), VersionName());

}  // namespace course::half_matmul
