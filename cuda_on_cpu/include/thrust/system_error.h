#pragma once
#pragma GCC system_header  // #include_next

#include <thrust/system/cuda/error.h>
#include_next <thrust/system_error.h>
