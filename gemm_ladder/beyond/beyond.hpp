// What comes after the eleven steps; each has a file of its own, from 12_multi_stage.cu on.
#pragma once

#include <string>

#include "../sgemm.hpp"

namespace gemm {

Kernel multi_stage();
Kernel stream_k();
Kernel dispatcher();
Kernel tf32x3();
std::string why_no_tf32(const Shape& shape);  // its constraint

}  // namespace gemm
