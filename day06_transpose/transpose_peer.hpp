// cuBLAS's transpose, to measure against.
#pragma once

#include "common/bench/program.hpp"
#include "common/device/device_view.hpp"

namespace day06 {

// cublasSgeam with alpha = 1 and beta = 0: a contestant for the day's program, without `work` and `verify`. Both matrices must outlive it.
course::Contestant cublas_geam(course::DeviceMatrix<const float> in, course::DeviceMatrix<float> out);

}  // namespace day06
