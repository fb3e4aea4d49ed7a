// Brain floating point, the upper half of a float: __nv_bfloat16, its pair __nv_bfloat162, and
// their functions.
#pragma once

#include <cuda_fp16.h>
#include <vector_types.h>

#include <concepts>

#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/small_float.h"

#define FLOAT16 __nv_bfloat16
#define FLOAT16_RAW __nv_bfloat16_raw
#define FLOAT16X2 __nv_bfloat162
#define FLOAT16X2_RAW __nv_bfloat162_raw
#define FLOAT16_FORMAT cuda_on_cpu::Bfloat16
#define FLOAT16_NAME bfloat16
#define FLOAT16_CONSTANT BF16
#include "cuda_on_cpu/float16_functions.inc"
#undef FLOAT16
#undef FLOAT16_RAW
#undef FLOAT16X2
#undef FLOAT16X2_RAW
#undef FLOAT16_FORMAT
#undef FLOAT16_NAME
#undef FLOAT16_CONSTANT

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
