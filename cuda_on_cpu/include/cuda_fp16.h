// Half precision: __half, its pair __half2, and their functions.
#pragma once

#include <vector_types.h>

#include <concepts>

#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/small_float.h"

#define FLOAT16 __half
#define FLOAT16_RAW __half_raw
#define FLOAT16X2 __half2
#define FLOAT16X2_RAW __half2_raw
#define FLOAT16_FORMAT cuda_on_cpu::Binary16
#define FLOAT16_NAME half
#define FLOAT16_CONSTANT FP16
#include "cuda_on_cpu/float16_functions.inc"
#undef FLOAT16
#undef FLOAT16_RAW
#undef FLOAT16X2
#undef FLOAT16X2_RAW
#undef FLOAT16_FORMAT
#undef FLOAT16_NAME
#undef FLOAT16_CONSTANT

using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;
