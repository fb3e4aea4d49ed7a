// cuSPARSE's products, to measure against.
#pragma once

#include <functional>
#include <vector>

#include "common/bench/program.hpp"
#include "common/device/device_view.hpp"
#include "spmv.hpp"

namespace day35 {

// cusparseSpMV of `csr` with every algorithm that cuSPARSE has for CSR, COO and sliced ELL, by
// name; of CSC the default. Its BSR is left out, because blocks of one size suit only one of the
// five matrices, and would be mostly padding on the others. Preparing a contestant converts and
// uploads the matrix, for this product alone, and runs cusparseSpMV_preprocess. `work`: of a
// product that reads so many bytes of the matrix, which are those of the contestant's format
// without padding. `cannot_run` says why where there is no cuSPARSE, it refuses, or its 32-bit
// offsets do not reach.
std::vector<course::Contestant> cusparse_products(
    const CsrMatrix& csr, course::DeviceSpan<const float> x, course::DeviceSpan<float> y,
    const std::function<course::Work(double matrix_bytes)>& work);

}  // namespace day35
