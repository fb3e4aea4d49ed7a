// Day 28's host code of the forward pass on tensor cores: constraints and the lists of versions.
// The kernel and its launch are in tensor_cores.cuh.
#include <array>

#include "common/device/tensor_core_support.hpp"
#include "conv_layers.hpp"
#include "launchers.hpp"
#include "tensor_cores.cuh"

namespace day28 {
namespace {

template <class T>
std::string constraint(const Shape& shape) {
    constexpr int kInChunk = 16 / sizeof(T);
    if (shape.c % kInChunk != 0)
        return "copies " + std::to_string(kInChunk) + " channels at a time; these are " +
               std::to_string(shape.c);
    return course::why_no_tensor_cores(conv_tensor_cores<TensorTile<T>>, kSharedBytes<TensorTile<T>>);
}

template <class T>
void tensor_cores(const PassCall<T>& call) {
    course::require(course::is_aligned(call.a, 16) && course::is_aligned(call.b, 16),
                    "conv_layers: an operand is not 16-byte aligned; expected what cudaMalloc returns");
    launch_conv_tensor_cores(call.a, call.b, call.out, call.shape, call.stream);
}

template <class T>
course::Work tensor_work(const Shape& shape) {
    course::Work of_floats = work(shape);
    of_floats.bytes *= sizeof(T) / 4.0;
    of_floats.written *= sizeof(T) / 4.0;
    of_floats.arithmetic = course::Arithmetic::kOther;
    return of_floats;
}

template <class T, void (*kEnqueue)(const PassCall<T>&), std::string (*kConstraint)(const Shape&)>
TensorCoreVersion<T> version(const char* name, const char* idea) {
    return {
        name, idea, {run<T, Pass::kForward, kEnqueue, nullptr, kConstraint>}, tensor_work<T>, kConstraint};
}

template <class T>
TensorCoreVersion<T> implicit_gemm_version() {
    return version<T, tensor_cores<T>, constraint<T>>("implicit_gemm", "mma.sync, channels last");
}

}  // namespace

template <>
std::span<const TensorCoreVersion<float>> tensor_core_versions<float>() {
    static const std::array list = {implicit_gemm_version<float>()};
    return list;
}

template <>
std::span<const TensorCoreVersion<__nv_bfloat16>> tensor_core_versions<__nv_bfloat16>() {
    static const std::array list = {implicit_gemm_version<__nv_bfloat16>(),
                                    version<__nv_bfloat16, tma_wgmma, tma_wgmma_constraint>(
                                        "tma_wgmma", "TMA makes the tiles of columns")};
    return list;
}

std::span<const TensorCoreVersion<__nv_bfloat16>> tma_wgmma_tiles() {
    using T = __nv_bfloat16;
    static const std::array<TensorCoreVersion<T>, kHopperTiles> list = {
        version<T, tma_wgmma_with<0>, tma_wgmma_constraint>("tile_64x64", "64 pixels x 64 filters"),
        version<T, tma_wgmma_with<1>, tma_wgmma_constraint>("tile_128x64", "128 pixels x 64 filters"),
        version<T, tma_wgmma_with<2>, tma_wgmma_constraint>("tile_128x128", "128 pixels x 128 filters"),
        version<T, tma_wgmma_with<3>, tma_wgmma_constraint>("tile_192x128", "192 pixels x 128 filters")};
    return list;
}

}  // namespace day28
