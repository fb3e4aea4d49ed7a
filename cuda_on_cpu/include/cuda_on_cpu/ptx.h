// The functions that replace inline PTX, one for each instruction, in cuda_on_cpu::ptx::isa.
// translator/ptx_instructions.cpp maps instructions to functions. They are inlined, so that reports
// and inspections name the line of the asm statement.
#pragma once

#include "cuda_on_cpu/ptx_async.h"
#include "cuda_on_cpu/ptx_float.h"
#include "cuda_on_cpu/ptx_integer.h"
#include "cuda_on_cpu/ptx_matrix.h"
#include "cuda_on_cpu/ptx_memory.h"
#include "cuda_on_cpu/ptx_threads.h"
#include "cuda_on_cpu/ptx_values.h"
