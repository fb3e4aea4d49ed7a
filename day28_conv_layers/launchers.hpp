// Day 28: what its host files share: a pass with its arguments checked, and versions that other
// files than their own list.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/device_view.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "conv_layers.hpp"

namespace day28 {

// The arguments of a pass, checked.
template <class T>
struct PassCall {
    Shape shape;
    const T* a;
    const T* b;
    T* out;
    float* scratch;
    cudaStream_t stream;
};
using Call = PassCall<float>;
using HopperCall = PassCall<__nv_bfloat16>;

// Parts of the scratch memory are 16-byte aligned.
inline std::size_t whole_packs(std::size_t floats) {
    return course::ceil_div(floats, std::size_t{4}) * 4;
}

// kLaunch(a, b, out, shape, stream), and a check of the launch.
template <auto kLaunch>
void without_scratch(const Call& call) {
    kLaunch(call.a, call.b, call.out, call.shape, call.stream);
    CUDA_CHECK_LAUNCH();
}

template <auto kLaunch>
void with_scratch(const Call& call) {
    kLaunch(call.a, call.b, call.out, call.scratch, call.shape, call.stream);
    CUDA_CHECK_LAUNCH();
}

// Checks the arguments, also against the version's own scratch() and constraint(); then
// kEnqueue(call), unless there is nothing to compute.
template <class T, Pass kPass, void (*kEnqueue)(const PassCall<T>&),
          std::size_t (*kScratch)(const Shape&) = nullptr, std::string (*kConstraint)(const Shape&) = nullptr>
void run(const Shape& shape, DeviceSpan<const T> a, DeviceSpan<const T> b, DeviceSpan<T> out,
         DeviceSpan<float> scratch, cudaStream_t stream) {
    using course::require;
    const Lengths expected = lengths(kPass, shape);
    const auto check = [&](const char* which, std::size_t got, std::size_t wanted) {
        require(got == wanted, "conv_layers: ", which, " has ", got, " elements for ", to_text(shape),
                "; expected ", wanted);
    };
    check("the first operand", a.size(), expected.a);
    check("the second operand", b.size(), expected.b);
    check("the result", out.size(), expected.out);
    require(!overlap(a, out) && !overlap(b, out),
            "conv_layers: the result overlaps an operand; expected no "
            "element in common");
    if constexpr (kConstraint != nullptr) {
        const std::string reason = kConstraint(shape);
        require(reason.empty(), "conv_layers: this version ", reason);
    }
    if constexpr (kScratch != nullptr) {
        require(scratch.size() >= kScratch(shape), "conv_layers: scratch has ", scratch.size(),
                " floats for ", to_text(shape), "; expected at least ", kScratch(shape));
        require(course::is_aligned(scratch.data(), 16),
                "conv_layers: scratch is not 16-byte aligned; expected "
                "what cudaMalloc returns");
        require(!overlap(scratch, a) && !overlap(scratch, b) && !overlap(scratch, out),
                "conv_layers: scratch overlaps a tensor; expected no element in common");
    }
    if (!out.empty()) kEnqueue({shape, a.data(), b.data(), out.data(), scratch.data(), stream});
}

// Versions that other files than their own list.
void implicit_gemm(const Call& call);
std::size_t implicit_gemm_scratch(const Shape& shape);
std::string implicit_gemm_constraint(const Shape& shape);
template <int m>  // 2, 4
void winograd(const Call& call);
template <int m>
std::size_t winograd_scratch(const Shape& shape);
template <int m>  // 4
void winograd_gradient(const Call& call);
template <int m>
std::size_t winograd_gradient_scratch(const Shape& shape);
std::string winograd_constraint(const Shape& shape);

// Forward by TMA and wgmma, in a library of its own (beyond/hopper_conv.cu): with the tile that
// suits the shape, or with a given one.
constexpr int kHopperTiles = 4;
void tma_wgmma(const HopperCall& call);
template <int kTile>  // below kHopperTiles
void tma_wgmma_with(const HopperCall& call);
std::string tma_wgmma_constraint(const Shape& shape);

course::Work work(const Shape& shape);
// Winograd needs fewer products, so the rate of the definition's products is no limit.
course::Work fewer_products(const Shape& shape);
std::span<const Version> backward_input_versions();
std::span<const Version> backward_weights_versions();

}  // namespace day28
