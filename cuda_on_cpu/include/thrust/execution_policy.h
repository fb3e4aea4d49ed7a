#pragma once
#pragma GCC system_header  // #include_next

#include_next <thrust/execution_policy.h>
#include <thrust/system/cuda/execution_policy.h>
