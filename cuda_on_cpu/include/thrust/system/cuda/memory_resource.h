#pragma once

#include <thrust/system/cpp/memory_resource.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {
using cpp::memory_resource;
using cpp::universal_host_pinned_memory_resource;
using cpp::universal_memory_resource;
}  // namespace cuda
}  // namespace system
namespace cuda {
using system::cuda::memory_resource;
using system::cuda::universal_host_pinned_memory_resource;
using system::cuda::universal_memory_resource;
}  // namespace cuda
THRUST_NAMESPACE_END
