#include "factors.hpp"

#include <limits>
#include <stdexcept>

#include "common/pack.cuh"

namespace day45 {
namespace {

std::string text(std::size_t rows, std::size_t cols) {
    return std::to_string(rows) + " x " + std::to_string(cols);
}

void check_batch(const Batch<const float>& batch, const std::string& caller, const std::string& name) {
    if (!batch.pointers.empty() && batch.pointers.size() != batch.count) {
        throw std::invalid_argument(caller + ": " + name + " has " + std::to_string(batch.pointers.size()) +
                                    " pointers for " + std::to_string(batch.count) +
                                    " matrices; expected one for each");
    }
}

}  // namespace

Factors transposed(const Factors& factors) {
    const auto other = [](Op op) { return op == Op::kNone ? Op::kTranspose : Op::kNone; };
    return {factors.b, factors.a, other(factors.op_b), other(factors.op_a)};
}

void check(const Factors& factors, const std::string& caller) {
    const std::size_t depth_of_b =
        factors.op_b == Op::kNone ? factors.b.first.rows() : factors.b.first.cols();
    if (depth_of_b != factors.k()) {
        throw std::invalid_argument(caller + ": op(A) is " + text(factors.m(), factors.k()) + " and op(B) " +
                                    text(depth_of_b, factors.n()) +
                                    "; expected as many rows of op(B) as op(A) has columns");
    }
    if (factors.a.count != factors.b.count) {
        throw std::invalid_argument(caller + ": there are " + std::to_string(factors.a.count) +
                                    " matrices A and " + std::to_string(factors.b.count) +
                                    " matrices B; expected as many");
    }
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    if (factors.m() > kMost || factors.n() > kMost || factors.k() > kMost) {
        throw std::invalid_argument(caller + ": m, n and k are " + text(factors.m(), factors.n()) + " x " +
                                    std::to_string(factors.k()) + "; expected each at most 2^31 - 1");
    }
    check_batch(factors.a, caller, "A");
    check_batch(factors.b, caller, "B");
}

bool b_goes_in_packs(const Factors& factors) {
    const auto& b = factors.b.first;
    return factors.op_b == Op::kNone && factors.b.pointers.empty() && course::is_aligned(b.data(), 16) &&
           b.cols() % 4 == 0 && b.leading_dimension() % 4 == 0 && factors.b.stride % 4 == 0;
}

}  // namespace day45
