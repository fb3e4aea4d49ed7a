// The sizes of matrix products on the command line: m x n x k.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/bench/program.hpp"
#include "common/check/matmul_arguments.hpp"

namespace course {

inline MatmulShape matmul_shape(const Dims& size) {
    if (size.size() != 3) throw std::invalid_argument("expected m x n x k, for example 512x512x512");
    return {size[0], size[1], size[2]};
}

inline std::string matmul_text(const Dims& size) {
    return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

inline std::vector<Dims> squares(const std::vector<std::size_t>& extents) {
    std::vector<Dims> sizes;
    for (const std::size_t n : extents)
        sizes.push_back({n, n, n});
    return sizes;
}

// Is the reference computed on the host? Above 10^9 multiply-adds the device does it.
inline bool reference_on_host(const MatmulShape& s) {
    return is_cpu_stand_in() ||
           static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) <= 1e9;
}

}  // namespace course
