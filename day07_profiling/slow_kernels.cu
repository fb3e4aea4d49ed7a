// The files that the exercises start from, as versions of the day. They have the names of the
// repaired ones, so here their namespace has another.
#include <cuda_runtime.h>

#include <array>
#include <cmath>
#include <cstddef>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "slow_kernels.hpp"

#define day07 day07_slow
#include "slow_kernels/mystery1.cuh"
#include "slow_kernels/mystery2.cuh"
#include "slow_kernels/mystery3.cuh"
#include "slow_kernels/mystery4.cuh"
#include "slow_kernels/mystery5.cuh"
#include "slow_kernels/mystery6.cuh"
#include "slow_kernels/mystery7.cuh"
#include "slow_kernels/mystery8.cuh"
#undef day07

namespace day07 {

std::span<const Launch> slow_launches() {
    static constexpr std::array<Launch, 8> list = {
        day07_slow::mystery1, day07_slow::mystery2, day07_slow::mystery3, day07_slow::mystery4,
        day07_slow::mystery5, day07_slow::mystery6, day07_slow::mystery7, day07_slow::mystery8};
    return list;
}

}  // namespace day07
