// Day 28's launchers of the gradients. The kernels are in backward.cuh.
#include <algorithm>
#include <array>

#include "backward.cuh"
#include "common/device/launch.hpp"
#include "conv_layers.hpp"
#include "launchers.hpp"

namespace day28 {
namespace {

void input_direct(const Call& call) {
    const Shape& shape = call.shape;
    const dim3 grid(blocks(shape.w, kTile) * blocks(shape.h, kTile), static_cast<unsigned>(shape.c),
                    static_cast<unsigned>(shape.n));
    course::launch(input_gradient_direct, {.grid = grid, .block = dim3(kTile, kTile), .stream = call.stream},
                   call.a, call.b, call.out, shape);
}

// --- dx as a convolution -------------------------------------------------------------------------

// Its shape: the outputs of stride 1 are its images, C its filters.
Shape transposed(const Shape& shape) {
    return {.n = shape.n,
            .c = shape.k,
            .h = shape.h + 2 * shape.padding - shape.r + 1,
            .w = shape.w + 2 * shape.padding - shape.s + 1,
            .k = shape.c,
            .r = shape.r,
            .s = shape.s,
            .padding = shape.r - 1 - shape.padding,
            .stride = 1};
}

std::string transposed_constraint(const Shape& shape) {
    if (shape.r != shape.s) return "needs square filters; these are " + course::shape_text(shape.r, shape.s);
    if (shape.padding >= shape.r)
        return "needs a padding below the filter's " + std::to_string(shape.r) + " rows; it is " +
               std::to_string(shape.padding);
    const Shape other = transposed(shape);
    const double spread = static_cast<double>(other.n) * other.c * other.h * other.w;
    if (spread > 0x1p30)
        return "spreads dy to " + std::to_string(static_cast<std::size_t>(spread)) +
               " elements; expected at most 1073741824";
    return implicit_gemm_constraint(other);
}

std::string transposed_winograd_constraint(const Shape& shape) {
    const std::string reason = winograd_constraint(shape);
    return reason.empty() ? transposed_constraint(shape) : reason;
}

std::size_t spread_floats(const Shape& shape) {
    const Shape other = transposed(shape);
    return shape.stride == 1 ? 0 : whole_packs(static_cast<std::size_t>(other.n) * other.image());
}

template <std::size_t (*kScratch)(const Shape&)>
std::size_t transposed_scratch(const Shape& shape) {
    return whole_packs(weights(shape)) + spread_floats(shape) + kScratch(transposed(shape));
}

// Turned filters, spread dy, and then the scratch memory of the forward version kEnqueue.
template <void (*kEnqueue)(const Call&)>
void as_convolution(const Call& call) {
    const Shape& shape = call.shape;
    const Shape other = transposed(shape);
    const int filters = shape.k * shape.filter();
    float* const turned = call.scratch;
    float* const spread = turned + whole_packs(static_cast<std::size_t>(filters));
    course::launch(turn_filters,
                   {.grid = blocks(filters, kCopyThreads), .block = kCopyThreads, .stream = call.stream},
                   call.b, turned, shape);
    if (shape.stride > 1)
        course::launch(spread_gradient,
                       {.grid = blocks(other.n * other.image(), kCopyThreads),
                        .block = kCopyThreads,
                        .stream = call.stream},
                       call.a, spread, shape, other.h, other.w);
    kEnqueue({other, shape.stride > 1 ? spread : call.a, turned, call.out, spread + spread_floats(shape),
              call.stream});
}

// --- dw ------------------------------------------------------------------------------------------

void weights_direct(const Call& call) {
    const Shape& shape = call.shape;
    course::launch(weight_gradient_direct,
                   {.grid = static_cast<unsigned>(shape.k * shape.filter()),
                    .block = kReduceThreads,
                    .stream = call.stream},
                   call.a, call.b, call.out, shape);
}

// In how many parts the depth is split. That does not depend on the device, so all devices round
// alike: enough blocks for a large GPU, but at least 32 steps for each.
struct Parts {
    int count;
    int steps;  // of each part but the last
};
Parts parts_of(const Shape& shape) {
    constexpr int kBlocks = 512;
    constexpr int kFewestSteps = 32;
    const int tiles = course::ceil_div(shape.filter(), Tile::BN) * course::ceil_div(shape.k, Tile::BM);
    const int steps = course::ceil_div(shape.n * shape.plane(), Tile::BK);
    const int wanted = std::clamp(kBlocks / tiles, 1, std::max(1, steps / kFewestSteps));
    const int of_part = std::max(1, course::ceil_div(steps, wanted));
    return {std::max(1, course::ceil_div(steps, of_part)), of_part};
}

std::size_t split_k_scratch(const Shape& shape) {
    return static_cast<std::size_t>(parts_of(shape).count) * weights(shape);
}

void split_k(const Call& call) {
    const Shape& shape = call.shape;
    const Parts parts = parts_of(shape);
    const int filters = shape.k * shape.filter();
    const dim3 grid(blocks(shape.filter(), Tile::BN), blocks(shape.k, Tile::BM),
                    static_cast<unsigned>(parts.count));
    course::launch(weight_gradient_split_k, {.grid = grid, .block = Tile::THREADS, .stream = call.stream},
                   call.a, call.b, call.scratch, shape, parts.steps);
    course::launch(sum_parts,
                   {.grid = blocks(filters, kCopyThreads), .block = kCopyThreads, .stream = call.stream},
                   call.scratch, call.out, filters, parts.count);
}

}  // namespace

std::span<const Version> backward_input_versions() {
    constexpr Pass kPass = Pass::kBackwardInput;
    constexpr auto kGemmScratch = transposed_scratch<implicit_gemm_scratch>;
    constexpr auto kWinogradScratch = transposed_scratch<winograd_scratch<4>>;
    static const std::array<Version, 3> list = {{
        {"direct", "a thread per input, which gathers", {run<float, kPass, input_direct>}, work},
        {"implicit_gemm",
         "a convolution with turned filters",
         {run<float, kPass, as_convolution<implicit_gemm>, kGemmScratch, transposed_constraint>,
          kGemmScratch},
         work,
         transposed_constraint},
        {"winograd_4x4",
         "the same, as F(4 x 4, 3 x 3)",
         {run<float, kPass, as_convolution<winograd<4>>, kWinogradScratch, transposed_winograd_constraint>,
          kWinogradScratch, 4},
         fewer_products,
         transposed_winograd_constraint},
    }};
    return list;
}

std::span<const Version> backward_weights_versions() {
    constexpr Pass kPass = Pass::kBackwardWeights;
    static const std::array<Version, 3> list = {{
        {"direct", "a block per weight", {run<float, kPass, weights_direct>}, work},
        {"split_k",
         "implicit GEMM, the depth in parts",
         {run<float, kPass, split_k, split_k_scratch>, split_k_scratch},
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
