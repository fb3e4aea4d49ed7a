// The host code of rounded_result.cuh: argument checks, the list of versions, the error bound.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "beyond/rounded_result.cuh"
#include "beyond/rounded_result.hpp"
#include "common/check/check.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/tensor_map.hpp"

namespace day41 {
namespace {

template <class T>
using RoundedTile = hopper::TileShape<T, 128, 256, 4, 2>;  // that of async_store

template <class T>
void check_arguments(const RoundedMatmul<T>& matmul) {
    const auto& [a, b, c] = matmul;
    course::require(a.rows() == c.rows() && a.cols() == b.rows() && b.cols() == c.cols(),
                    "hopper_matmul: A is ", a, ", B is ", b, ", C is ", c,
                    "; expected A: M x K, B: K x N, C: M x N");
    course::check_extents_and_overlap("hopper_matmul", a, b, c);
}

template <class T>
std::string why_not(const RoundedMatmul<T>& matmul) {
    check_arguments(matmul);
    if (matmul.a.cols() == 0) return "";  // nothing is loaded
    if (const std::string reason = course::why_no_tensor_map(matmul.a); !reason.empty()) return "A " + reason;
    if (const std::string reason = course::why_no_tensor_map(matmul.b); !reason.empty()) return "B " + reason;
    return "";
}

template <class T, RoundedStore kStore>
void launch(const RoundedMatmul<T>& matmul, cudaStream_t stream) {
    const std::string reason = why_not(matmul);
    course::require(reason.empty(), "hopper_matmul: ", reason);
    if (matmul.c.rows() == 0 || matmul.c.cols() == 0) return;
    launch_rounded_result<RoundedTile<T>, kStore>(matmul.a, matmul.b, matmul.c, stream);
    CUDA_CHECK_LAUNCH();
}

template <class T, RoundedStore kStore>
course::KernelResources resources() {
    using S = RoundedTile<T>;
    constexpr std::size_t kShared = sizeof(RingAndRoundedSlices<S>);
    course::allow_shared_bytes(rounded_result<S, kStore>, kShared);
    return course::resources_of(rounded_result<S, kStore>, (1 + S::CONSUMERS) * kWarpgroup, kShared);
}

template <class T, RoundedStore kStore>
RoundedKernelFor<T> kernel_for() {
    return {.launch = launch<T, kStore>, .why_not = why_not<T>, .resources = resources<T, kStore>};
}

course::Work work_of(const Shape& shape) {
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    return {.bytes = 2 * (m * k + k * n + m * n),
            .written = 2 * m * n,
            .flops = 2 * m * n * k,
            .arithmetic = course::Arithmetic::kOther};
}

template <RoundedStore kStore>
RoundedVersion version(const char* name, const char* idea) {
    return {
        .name = name,
        .idea = idea,
        .launcher = {.half = kernel_for<__half, kStore>(), .bfloat16 = kernel_for<__nv_bfloat16, kStore>()},
        .work = work_of,
        .constraint = [](const Shape&) { return course::why_no_hopper(); }};
}

}  // namespace

std::span<const RoundedVersion> rounded_versions() {
    static const std::vector<RoundedVersion> list = {
        version<RoundedStore::kPairs>("stored_pairs", "each thread stores two 16-bit results at a time"),
        version<RoundedStore::kStmatrix>("stmatrix",
                                         "16-bit results pass through shared memory by stmatrix")};
    return list;
}

template <class T>
course::VerifyResult verify_rounded(const std::vector<T>& got, std::span<const double> product,
                                    std::span<const double> magnitude, const course::Bound& of_sum,
                                    std::size_t cols) {
    constexpr double kEpsilon = course::FloatTraits<T>::kEpsilon;
    const double roundings = of_sum.roundings() * course::FloatTraits<float>::kEpsilon;
    // What verify() multiplies by kEpsilon. It ignores magnitudes where the product is not finite.
    std::vector<double> allowed(product.size());
    for (std::size_t i = 0; i < allowed.size(); ++i) {
        if (!std::isfinite(product[i]) || !std::isfinite(magnitude[i])) continue;
        const double in_sum = roundings * magnitude[i];
        allowed[i] = in_sum / kEpsilon + (std::abs(product[i]) + in_sum) / 2;
    }
    return course::verify(got, product, {.terms = 1, .factor = 1}, allowed, cols);
}

template course::VerifyResult verify_rounded(const std::vector<__half>&, std::span<const double>,
                                             std::span<const double>, const course::Bound&, std::size_t);
template course::VerifyResult verify_rounded(const std::vector<__nv_bfloat16>&, std::span<const double>,
                                             std::span<const double>, const course::Bound&, std::size_t);

}  // namespace day41
