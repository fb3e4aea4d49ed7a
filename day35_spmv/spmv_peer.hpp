// cuSPARSE's products, to measure against.
#pragma once

#include <vector>

#include "common/device_view.hpp"
#include "common/program.hpp"
#include "spmv.hpp"

namespace day35 {

// cusparseSpMV of `csr` in every format and with every algorithm it has for y = A x: CSR and COO with each algorithm by name, and
// sliced ELL. Buffers are allocated and cusparseSpMV_preprocess has run when this returns. A contestant's `cannot_run` says why where there
// is no cuSPARSE, or it has no room for the matrix.
std::vector<course::Contestant> cusparse_products(const CsrMatrix& csr, course::DeviceSpan<const float> x,
                                                  course::DeviceSpan<float> y);

}  // namespace day35
