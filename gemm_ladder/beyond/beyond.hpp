// The steps after the eleven. Each has a file of its own, from 12_multi_stage.cuh on.
#pragma once

#include <string>

#include "../sgemm.hpp"

namespace gemm {

Kernel multi_stage();
Kernel stream_k();
Kernel dispatcher();
Kernel tf32x3();
// The constraint of tf32x3(): empty if it can run.
std::string why_no_tf32(const Shape& shape);
Kernel tf32x3_wgmma_alone();
Kernel tf32x3_wgmma();
// The constraint of both.
std::string why_no_tf32_wgmma(const Shape& shape);

}  // namespace gemm
