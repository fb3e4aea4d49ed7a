// What the tests multiply: matrices between guards, with NaN between their rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/check/guarded_matrix.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "scratch.hpp"
#include "sgemm.hpp"

namespace gemm::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Problem {
    Shape shape{};
    float alpha = 1;
    float beta = 0;
    std::size_t padding = 0;        // elements after each row of A; B has one more, C two
    std::size_t misaligned_by = 0;  // elements between an aligned address and the first of each matrix
    bool nan_in_c = false;          // only where C must not be read
};

inline std::string text_of(const Problem& p) {
    return std::to_string(p.shape.m) + " x " + std::to_string(p.shape.n) + " x " + std::to_string(p.shape.k) +
           ", alpha " + std::to_string(p.alpha) + ", beta " + std::to_string(p.beta) + ", padding " +
           std::to_string(p.padding) + ", misaligned by " + std::to_string(p.misaligned_by) +
           (p.nan_in_c ? ", NaN in C" : "");
}

using Operand = course::GuardedMatrix<float>;

// Small ones: every product and every sum of the tests is exact in single precision, so only equal
// is right.
inline std::vector<float> integers(std::size_t count, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float> values(count);
    for (float& value : values)
        value = static_cast<float>(random.integer(-8, 8));
    return values;
}

// The result of `launch`, called twice with the same scratch memory, so that what the first call
// leaves there meets the second; against the reference in double. Packed, row-major: a is m x k, b
// is k x n, c is m x n.
inline course::VerifyResult multiply_twice(const std::function<void(const Sgemm&)>& launch,
                                           const ScratchSize& scratch_size, const Problem& problem,
                                           const std::vector<float>& a, const std::vector<float>& b,
                                           const std::vector<float>& c, const course::Bound& bound) {
    const auto [m, n, k] = problem.shape;
    Operand a_device(a, m, k, problem.padding, problem.misaligned_by);
    Operand b_device(b, k, n, problem.padding == 0 ? 0 : problem.padding + 1, problem.misaligned_by);
    const std::size_t c_padding = problem.padding == 0 ? 0 : problem.padding + 2;
    ScratchMemory scratch(scratch_size);

    std::vector<double> product(c.begin(), c.end());
    std::vector<double> magnitude(c.size());
    multiply_on_cpu(problem.shape, problem.alpha, a, b, problem.beta, product, magnitude);
    for (double& size : magnitude)  // verify() wants finite ones; where it is not, neither is the product
        size = std::isfinite(size) ? size : 0;

    course::VerifyResult result;
    for (int call = 0; call < 2 && result.ok(); ++call) {
        Operand c_device(c, m, n, c_padding, problem.misaligned_by);
        launch({.a = a_device.view(),
                .b = b_device.view(),
                .c = c_device.view(),
                .alpha = problem.alpha,
                .beta = problem.beta,
                .scratch = scratch.view()});
        result = course::verify(c_device.packed(), product, bound, magnitude, n);
        result.damage = c_device.damage();
        const course::DeviceSpan<unsigned> tickets = scratch.view().tickets;
        std::vector<unsigned> left(tickets.size());
        course::copy_device_to_host(left.data(), left.size(), tickets.data(), tickets.size(),
                                    sizeof(unsigned), nullptr);
        if (left != std::vector<unsigned>(left.size()))
            result.damage += "tickets are not zero after the launch";
    }
    return result;
}

}  // namespace gemm::test
