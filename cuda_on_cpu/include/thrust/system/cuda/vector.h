#pragma once

#include <thrust/system/cpp/vector.h>
#include <thrust/system/cuda/memory.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {
using cpp::universal_vector;
using cpp::vector;
}  // namespace cuda
}  // namespace system
namespace cuda {
using system::cuda::universal_vector;
using system::cuda::vector;
}  // namespace cuda
THRUST_NAMESPACE_END
