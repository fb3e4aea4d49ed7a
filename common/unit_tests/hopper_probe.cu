#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "hopper_probe.hpp"

namespace course::testing {
namespace {

__global__ void look(int* result) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    *result = 1;
#else
    *result = 0;
#endif
}

}  // namespace

bool built_for_hopper_alone() {
    if (is_cpu_stand_in()) return true;
    DeviceBuffer<int> result(1);
    look<<<1, 1>>>(result.data());
    CUDA_CHECK_LAUNCH();
    return result.to_host()[0] == 1;
}

}  // namespace course::testing
