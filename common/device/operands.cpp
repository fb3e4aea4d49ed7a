#include "common/device/operands.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/check/require.hpp"
#include "common/device/pack.cuh"

namespace course {
namespace {

template <class T>
void check_batch(const Batch<T>& batch, std::string_view caller, std::string_view name) {
    require(batch.pointers.empty() || batch.pointers.size() == batch.count, caller, ": ", name, " has ",
            batch.pointers.size(), " pointers for ", batch.count, " matrices; expected one for each");
}

// The memory from the first element of the first matrix to the last element of the last matrix.
template <class T>
DeviceSpan<T> extent_of(const Batch<T>& batch) {
    const auto& matrix = batch.first;
    const bool is_empty = batch.count == 0 || matrix.rows() == 0 || matrix.cols() == 0;
    return DeviceSpan<T>::from_device_pointer(
        matrix.data(), is_empty ? 0
                                : (batch.count - 1) * batch.stride +
                                      (matrix.rows() - 1) * matrix.leading_dimension() + matrix.cols());
}

bool rows_are_packs(const Batch<const float>& batch) {
    const auto& first = batch.first;
    return batch.pointers.empty() && is_aligned(first.data(), 16) && first.cols() % 4 == 0 &&
           first.leading_dimension() % 4 == 0 && batch.stride % 4 == 0;
}

}  // namespace

Operands transposed(const Operands& operands) {
    const auto other = [](Op op) { return op == Op::kNone ? Op::kTranspose : Op::kNone; };
    return {operands.b, operands.a, other(operands.op_b), other(operands.op_a)};
}

template <class T>
void check_operands(const OperandsOf<T>& operands, std::string_view caller) {
    const std::size_t depth_of_b =
        operands.op_b == Op::kNone ? operands.b.first.rows() : operands.b.first.cols();
    require(depth_of_b == operands.k(), caller, ": op(A) is ", operands.m(), " x ", operands.k(),
            " and op(B) ", depth_of_b, " x ", operands.n(),
            "; expected as many rows of op(B) as op(A) has columns");
    require(operands.a.count == operands.b.count, caller, ": there are ", operands.a.count,
            " matrices A and ", operands.b.count, " matrices B; expected as many");
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    require(operands.m() <= kMost && operands.n() <= kMost && operands.k() <= kMost, caller,
            ": m, n and k are ", operands.m(), " x ", operands.n(), " x ", operands.k(),
            "; expected each at most 2^31 - 1");
    // 32 leading dimensions must fit into 31 bits.
    constexpr std::size_t kLongest = (std::size_t{1} << 26) - 1;
    const std::size_t longest =
        std::max(operands.a.first.leading_dimension(), operands.b.first.leading_dimension());
    require(longest <= kLongest, caller, ": a leading dimension is ", longest, "; expected at most 2^26 - 1");
    check_batch(operands.a, caller, "A");
    check_batch(operands.b, caller, "B");
}

template <class T>
void check_output(const OperandsOf<T>& operands, const Batch<float>& c, std::string_view caller) {
    const auto& first = c.first;
    require(first.rows() == operands.m() && first.cols() == operands.n() && c.count == operands.count(),
            caller, ": there are ", c.count, " matrices C of ", first, "; expected ", operands.count(),
            " of ", operands.m(), " x ", operands.n());
    check_batch(c, caller, "C");
    if (!c.pointers.empty() || first.rows() == 0 || first.cols() == 0) return;
    const std::size_t length = (first.rows() - 1) * first.leading_dimension() + first.cols();
    const bool side_by_side =
        c.stride >= first.cols() && (c.count - 1) * c.stride + first.cols() <= first.leading_dimension();
    require(c.count <= 1 || c.stride >= length || side_by_side, caller, ": the stride of C is ", c.stride,
            "; expected at least ", length, ", or matrices side by side, so that they do not overlap");
    const auto overlaps = [&](const Batch<const T>& other) {
        return c.count == 1 ? overlap(first, other.first) : overlap(extent_of(c), extent_of(other));
    };
    for (const auto& [batch, name] : {std::pair(&operands.a, "A"), {&operands.b, "B"}}) {
        require(!batch->pointers.empty() || !overlaps(*batch), caller, ": C overlaps ", name,
                "; expected memory of its own for it");
    }
}

template void check_operands(const OperandsOf<float>&, std::string_view);
template void check_operands(const OperandsOf<__nv_bfloat16>&, std::string_view);
template void check_operands(const OperandsOf<__half>&, std::string_view);
template void check_output(const OperandsOf<float>&, const Batch<float>&, std::string_view);
template void check_output(const OperandsOf<__nv_bfloat16>&, const Batch<float>&, std::string_view);
template void check_output(const OperandsOf<__half>&, const Batch<float>&, std::string_view);

bool a_goes_in_packs(const Operands& operands) {
    return operands.op_a == Op::kTranspose && rows_are_packs(operands.a);
}

bool b_goes_in_packs(const Operands& operands) {
    return operands.op_b == Op::kNone && rows_are_packs(operands.b);
}

}  // namespace course
