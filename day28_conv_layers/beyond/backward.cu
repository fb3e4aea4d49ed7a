// Day 28's host code of the gradients: constraints, scratch memory, dx as convolutions, the lists
// of versions. The kernels and their launches are in backward.cuh and few_channels.cuh.
#include <algorithm>
#include <array>

#include "backward.cuh"
#include "common/check/check.hpp"
#include "conv_layers.hpp"
#include "few_channels.cuh"
#include "launchers.hpp"

namespace day28 {
namespace {

// --- dx as convolutions --------------------------------------------------------------------------

// With stride 1, one convolution, whose filters are C.
Shape transposed(const Shape& shape) {
    return {.n = shape.n,
            .c = shape.k,
            .h = shape.p(),
            .w = shape.q(),
            .k = shape.c,
            .r = shape.r,
            .s = shape.s,
            .padding = shape.r - 1 - shape.padding,
            .stride = 1};
}

// With a larger stride, one for each phase. The first phase has the most rows and columns, so its
// padding is enough for all.
Shape of_phase(const Shape& shape, const Phase& phase) {
    Shape convolution = transposed(shape);
    convolution.r = phase.rows;
    convolution.s = phase.cols;
    convolution.padding = course::ceil_div(shape.r, shape.stride) - 1;
    return convolution;
}

Phase phase_at(const Shape& shape, int row, int col) {
    return {row, col, course::ceil_div(shape.r - row, shape.stride),
            course::ceil_div(shape.s - col, shape.stride)};
}

// How many rows of the filters start a phase.
int phases_down(const Shape& shape) {
    return std::min(shape.stride, shape.r);
}
int phases_across(const Shape& shape) {
    return std::min(shape.stride, shape.s);
}

// Elements that a phase has at most, in the padding too. The last phase has the fewest rows of the
// filters, so its convolution has the most outputs.
std::size_t phase_elements(const Shape& shape) {
    const Phase last = phase_at(shape, phases_down(shape) - 1, phases_across(shape) - 1);
    const Shape most = of_phase(shape, last);
    const auto plane = [](int rows, int cols) {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    };
    return static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.c) *
           std::max(plane(most.p(), most.q()), plane(rows_of_phase(shape), cols_of_phase(shape)));
}

std::string transposed_constraint(const Shape& shape) {
    if (shape.stride < 1) return "needs a stride of at least 1; it is " + std::to_string(shape.stride);
    if (shape.r != shape.s) return "needs square filters; these are " + course::shape_text(shape.r, shape.s);
    if (shape.padding >= shape.r)
        return "needs a padding below the filter's " + std::to_string(shape.r) + " rows; it is " +
               std::to_string(shape.padding);
    if (shape.stride == 1) return implicit_gemm_constraint(transposed(shape));
    constexpr int kMostPhases = 1024;
    const int phases = phases_down(shape) * phases_across(shape);
    if (phases > kMostPhases)
        return "is a convolution for each of " + std::to_string(phases) + " phases of a stride of " +
               std::to_string(shape.stride) + "; expected at most " + std::to_string(kMostPhases);
    if (phase_elements(shape) > std::size_t{1} << 30)
        return "makes a phase of " + std::to_string(phase_elements(shape)) +
               " elements; expected at most 1073741824";
    return implicit_gemm_constraint(of_phase(shape, phase_at(shape, 0, 0)));
}

std::string transposed_winograd_constraint(const Shape& shape) {
    const std::string reason = winograd_constraint(shape);
    return reason.empty() ? transposed_constraint(shape) : reason;
}

// Turned filters, and the scratch memory of the forward version.
template <std::size_t (*kScratch)(const Shape&)>
std::size_t transposed_scratch(const Shape& shape) {
    const std::size_t turned = whole_packs(weights(shape));
    if (shape.stride == 1) return turned + kScratch(transposed(shape));
    return turned + whole_packs(phase_elements(shape)) + kScratch(of_phase(shape, phase_at(shape, 0, 0)));
}

// With stride 1.
template <void (*kEnqueue)(const Call&)>
void as_convolution(const Call& call) {
    launch_turn_filters(call.b, call.scratch, call.shape, phase_at(call.shape, 0, 0), call.stream);
    CUDA_CHECK_LAUNCH();
    kEnqueue({transposed(call.shape), call.a, call.scratch, call.out,
              call.scratch + whole_packs(weights(call.shape)), call.stream});
}

void as_implicit_gemm(const Call& call) {
    const Shape& shape = call.shape;
    if (shape.stride == 1) return as_convolution<implicit_gemm>(call);
    float* const results = call.scratch + whole_packs(weights(shape));
    float* const scratch = results + whole_packs(phase_elements(shape));
    if (shape.stride > shape.r)  // rows and columns that are under no filter
        CUDA_CHECK(cudaMemsetAsync(call.out, 0, inputs(shape) * sizeof(float), call.stream));
    for (int row = 0; row < phases_down(shape); ++row)
        for (int col = 0; col < phases_across(shape); ++col) {
            const Phase phase = phase_at(shape, row, col);
            const Shape convolution = of_phase(shape, phase);
            launch_turn_filters(call.b, call.scratch, shape, phase, call.stream);
            CUDA_CHECK_LAUNCH();
            implicit_gemm({convolution, call.a, call.scratch, results, scratch, call.stream});
            launch_place_phase(results, call.out, shape, phase, convolution, call.stream);
            CUDA_CHECK_LAUNCH();
        }
}

// --- dx of few channels --------------------------------------------------------------------------

std::string few_channels_constraint(const Shape& shape) {
    if (shape.c > kMostChannels)
        return "is for at most " + std::to_string(kMostChannels) + " channels; these are " +
               std::to_string(shape.c);
    if (shape.stride < 1) return "needs a stride of at least 1; it is " + std::to_string(shape.stride);
    constexpr int kMostStride = 16;
    if (shape.stride > kMostStride)
        return "needs a stride of at most " + std::to_string(kMostStride) + "; it is " +
               std::to_string(shape.stride);
    const int most = kMostTaps * shape.stride;
    if (shape.r > most || shape.s > most)
        return "needs filters of at most " + course::shape_text(most, most) + " with a stride of " +
               std::to_string(shape.stride) + "; these are " + course::shape_text(shape.r, shape.s);
    return "";
}

// --- dw ------------------------------------------------------------------------------------------

std::size_t split_k_scratch(const Shape& shape) {
    return static_cast<std::size_t>(parts_of(shape).count) * weights(shape);
}

}  // namespace

std::span<const Version> backward_input_versions() {
    constexpr Pass kPass = Pass::kBackwardInput;
    constexpr auto kGemmScratch = transposed_scratch<implicit_gemm_scratch>;
    constexpr auto kWinogradScratch = transposed_scratch<winograd_scratch<4>>;
    static const std::array<Version, 4> list = {{
        {"direct",
         "a thread per input, which gathers",
         {run<float, kPass, without_scratch<launch_input_gradient_direct>>},
         work},
        {"implicit_gemm",
         "a convolution with turned filters",
         {run<float, kPass, as_implicit_gemm, kGemmScratch, transposed_constraint>, kGemmScratch},
         work,
         transposed_constraint},
        {"winograd_4x4",
         "the same, as F(4 x 4, 3 x 3)",
         {run<float, kPass, as_convolution<winograd<4>>, kWinogradScratch, transposed_winograd_constraint>,
          kWinogradScratch, 4},
         fewer_products,
         transposed_winograd_constraint},
        {"few_channels",
         "a thread per eight inputs, all channels",
         {run<float, kPass, without_scratch<launch_few_channels>, nullptr, few_channels_constraint>},
         work,
         few_channels_constraint},
    }};
    return list;
}

std::span<const Version> backward_weights_versions() {
    constexpr Pass kPass = Pass::kBackwardWeights;
    static const std::array<Version, 3> list = {{
        {"direct",
         "a block per weight",
         {run<float, kPass, without_scratch<launch_weight_gradient_direct>>},
         work},
        {"split_k",
         "implicit GEMM, the depth in parts",
         {run<float, kPass, with_scratch<launch_weight_gradient_split_k>, split_k_scratch>, split_k_scratch},
         work},
        {"winograd_4x4",
         "dU = dM * V, G^T dU G",
         {run<float, kPass, winograd_gradient<4>, winograd_gradient_scratch<4>, winograd_constraint>,
          winograd_gradient_scratch<4>, 4},
         fewer_products,
         winograd_constraint},
    }};
    return list;
}

}  // namespace day28
