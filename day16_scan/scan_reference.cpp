#include <cmath>

#include "common/check/require.hpp"
#include "scan.hpp"

namespace day16 {

void scan_on_cpu(std::span<const float> in, std::span<double> sums, std::span<double> magnitudes) {
    course::require(sums.size() == in.size() && magnitudes.size() == in.size(), "scan_on_cpu: in has ",
                    in.size(), " elements, sums ", sums.size(), ", magnitudes ", magnitudes.size(),
                    "; expected the same number");
    double sum = 0;
    double magnitude = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        sum += static_cast<double>(in[i]);
        magnitude += std::abs(static_cast<double>(in[i]));
        sums[i] = sum;
        magnitudes[i] = magnitude;
    }
}

}  // namespace day16
