// What comes after the eleven steps; each has a file of its own, from 12_multi_stage.cu on.
#pragma once

#include "../sgemm.hpp"

namespace gemm {}  // namespace gemm
