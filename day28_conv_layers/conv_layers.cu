// Day 28's host code of the forward pass in FP32: constraints, scratch memory, the list of
// versions. The kernels and their launches are in conv_layers.cuh, beyond/implicit_gemm.cuh and
// beyond/winograd.cuh.
#include <array>

#include "beyond/implicit_gemm.cuh"
#include "conv_layers.cuh"
#include "conv_layers.hpp"
#include "launchers.hpp"

namespace day28 {
namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 30;
constexpr int kMostExtent = 32768;  // no sum or product of two leaves an int

std::string direct_tiled_constraint(const Shape& shape) {
    constexpr std::size_t kMost = std::size_t{48} << 10;
    if (patch_bytes(shape) <= kMost) return "";
    return "needs " + std::to_string(patch_bytes(shape)) +
           " bytes of shared memory for a patch; a block has " + std::to_string(kMost);
}

std::size_t unrolled_scratch(const Shape& shape) {
    return static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.filter()) *
           static_cast<std::size_t>(shape.plane());
}

std::string unrolled_constraint(const Shape& shape) {
    if (unrolled_scratch(shape) <= kMostElements) return "";
    return "unrolls the images into " + std::to_string(unrolled_scratch(shape)) +
           " floats; expected at most " + std::to_string(kMostElements);
}

}  // namespace

std::size_t implicit_gemm_scratch(const Shape& shape) {
    return packed_floats(shape) + padded_depth(shape) * (sizeof(Tap) / sizeof(float));
}

std::string implicit_gemm_constraint(const Shape& shape) {
    if (packed_floats(shape) <= kMostElements) return "";
    return "packs the filters into " + std::to_string(packed_floats(shape)) + " floats; expected at most " +
           std::to_string(kMostElements);
}

void implicit_gemm(const Call& call) {
    with_scratch<launch_conv_implicit_gemm>(call);
}

// --- The lists -----------------------------------------------------------------------------------

course::Work work(const Shape& shape) {
    const auto bytes = [](std::size_t floats) { return sizeof(float) * static_cast<double>(floats); };
    return {.bytes = bytes(inputs(shape)) + bytes(weights(shape)) + bytes(outputs(shape)),
            .written = bytes(outputs(shape)),
            .flops = 2.0 * static_cast<double>(outputs(shape)) * shape.filter()};
}

course::Work fewer_products(const Shape& shape) {
    course::Work of_definition = work(shape);
    of_definition.arithmetic = course::Arithmetic::kOther;
    return of_definition;
}

namespace {

std::span<const Version> forward_versions() {
    constexpr Pass kPass = Pass::kForward;
    static const std::array<Version, 7> list = {{
        {"direct", "a thread per output", {run<float, kPass, without_scratch<launch_conv_direct>>}, work},
        {"direct_tiled",
         "a patch in shared memory, eight filters",
         {run<float, kPass, without_scratch<launch_conv_direct_tiled>, nullptr, direct_tiled_constraint>},
         work,
         direct_tiled_constraint},
        {"unrolled",
         "patches become columns of a matrix",
         {run<float, kPass, with_scratch<launch_conv_unrolled>, unrolled_scratch, unrolled_constraint>,
          unrolled_scratch},
         work,
         unrolled_constraint},
        {"implicit_tiled",
         "the matrix exists as tiles only",
         {run<float, kPass, without_scratch<launch_conv_implicit_tiled>>},
         work},
        {"implicit_gemm",
         "8 x 8 outputs a thread, taps precomputed",
         {run<float, kPass, implicit_gemm, implicit_gemm_scratch, implicit_gemm_constraint>,
          implicit_gemm_scratch},
         work,
         implicit_gemm_constraint},
        {"winograd_2x2",
         "F(2 x 2, 3 x 3)",
         {run<float, kPass, winograd<2>, winograd_scratch<2>, winograd_constraint>, winograd_scratch<2>, 2},
         fewer_products,
         winograd_constraint},
        {"winograd_4x4",
         "F(4 x 4, 3 x 3)",
         {run<float, kPass, winograd<4>, winograd_scratch<4>, winograd_constraint>, winograd_scratch<4>, 4},
         fewer_products,
         winograd_constraint},
    }};
    return list;
}

void check(const Shape& shape) {
    using course::require;
    const auto positive = [](const char* what, int extent) {
        require(extent >= 1, "conv_layers: ", what, " is ", extent, "; expected at least 1");
    };
    require(shape.n >= 0, "conv_layers: n is ", shape.n, "; expected at least 0");
    positive("c", shape.c);
    positive("h", shape.h);
    positive("w", shape.w);
    positive("k", shape.k);
    positive("r", shape.r);
    positive("s", shape.s);
    positive("stride", shape.stride);
    require(shape.padding >= 0, "conv_layers: padding is ", shape.padding, "; expected at least 0");
    for (const int extent :
         {shape.n, shape.c, shape.h, shape.w, shape.k, shape.r, shape.s, shape.padding, shape.stride})
        require(extent <= kMostExtent, "conv_layers: an extent of ", to_text(shape), " is ", extent,
                "; expected at most ", kMostExtent);
    require(shape.r <= shape.h + 2 * shape.padding && shape.s <= shape.w + 2 * shape.padding,
            "conv_layers: the filter is ", course::shape_text(shape.r, shape.s),
            " and the image with padding ",
            course::shape_text(shape.h + 2 * shape.padding, shape.w + 2 * shape.padding),
            "; expected a filter that fits into it");
}

std::size_t elements(const Shape& shape, const char* what, std::initializer_list<int> extents) {
    check(shape);
    std::size_t product = 1;
    for (const int extent : extents)
        product *= static_cast<std::size_t>(extent);  // four factors of at most 2^15
    course::require(product <= kMostElements, "conv_layers: ", what, " of ", to_text(shape), " has ", product,
                    " elements; expected at most ", kMostElements);
    return product;
}

}  // namespace

std::size_t inputs(const Shape& shape) {
    return elements(shape, "x", {shape.n, shape.c, shape.h, shape.w});
}
std::size_t weights(const Shape& shape) {
    return elements(shape, "w", {shape.k, shape.c, shape.r, shape.s});
}
std::size_t outputs(const Shape& shape) {
    check(shape);
    return elements(shape, "y", {shape.n, shape.k, shape.p(), shape.q()});
}

std::string to_text(const Shape& shape) {
    return course::shape_text(shape.n, shape.c, shape.h, shape.w) + ", " + std::to_string(shape.k) +
           " filters of " + course::shape_text(shape.r, shape.s) + ", padding " +
           std::to_string(shape.padding) + ", stride " + std::to_string(shape.stride);
}

std::string_view name(Pass pass) {
    static constexpr std::array<std::string_view, 3> kNames = {"forward", "backward_input",
                                                               "backward_weights"};
    return kNames.at(static_cast<std::size_t>(pass));
}

Lengths lengths(Pass pass, const Shape& shape) {
    const std::size_t x = inputs(shape);
    const std::size_t w = weights(shape);
    const std::size_t y = outputs(shape);
    const auto filter_size = static_cast<std::size_t>(shape.r) * static_cast<std::size_t>(shape.s);
    switch (pass) {
        case Pass::kForward:
            return {x, w, y, filter_size * static_cast<std::size_t>(shape.c)};
        case Pass::kBackwardInput:
            return {y, w, x, filter_size * static_cast<std::size_t>(shape.k)};
        default:
            return {x, y, w, static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.plane())};
    }
}

std::span<const Version> versions(Pass pass) {
    switch (pass) {
        case Pass::kForward:
            return forward_versions();
        case Pass::kBackwardInput:
            return backward_input_versions();
        default:
            return backward_weights_versions();
    }
}

}  // namespace day28
