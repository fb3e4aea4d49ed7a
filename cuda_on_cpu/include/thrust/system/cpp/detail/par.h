#pragma once
#pragma GCC system_header  // #include_next

#include_next <thrust/system/cpp/detail/par.h>
#include <thrust/system/cuda/begin.h>

CUDA_ON_CPU_THRUST_POLICY(thrust::system::cpp::detail::par_t, nullptr)
