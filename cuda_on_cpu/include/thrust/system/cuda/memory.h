#pragma once

#include <thrust/system/cpp/memory.h>
#include <thrust/system/cuda/memory_resource.h>
#include <thrust/system/cuda/pointer.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {
using cpp::allocator;
using cpp::universal_allocator;
}  // namespace cuda
}  // namespace system
namespace cuda {
using system::cuda::allocator;
using system::cuda::universal_allocator;
}  // namespace cuda
THRUST_NAMESPACE_END
