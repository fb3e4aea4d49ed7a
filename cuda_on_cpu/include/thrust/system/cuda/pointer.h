#pragma once

#include <thrust/system/cpp/pointer.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cuda {
using cpp::pointer;
using cpp::reference;
using cpp::universal_pointer;
}  // namespace cuda
}  // namespace system
namespace cuda {
using system::cuda::pointer;
using system::cuda::reference;
using system::cuda::universal_pointer;
}  // namespace cuda
THRUST_NAMESPACE_END
