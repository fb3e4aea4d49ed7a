// Day 27's host code: checks of arguments, the workspace, and the list of versions. The kernels and
// their launches are in router.cuh and mixture_of_experts.cuh.
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "layer_check.hpp"
#include "mixture_of_experts.cuh"
#include "mixture_of_experts.hpp"

namespace day27 {
namespace {

using course::require;

Task task_of(const Layer& layer, Workspace& workspace) {
    const Shape& shape = layer.shape;
    return {layer.logits.data(),
            layer.x.data(),
            layer.weights.data(),
            layer.out.data(),
            static_cast<int>(shape.tokens),
            static_cast<int>(shape.hidden),
            static_cast<int>(shape.width),
            static_cast<int>(shape.experts),
            static_cast<int>(shape.chosen),
            workspace.choice.data(),
            workspace.gate.data(),
            workspace.counts.data(),
            workspace.starts.data(),
            workspace.place.data(),
            workspace.pair_at.data(),
            workspace.result.data(),
            workspace.tiles.data()};
}

template <auto kLaunch>
void run(const Layer& layer, Workspace& workspace, cudaStream_t stream) {
    if (!check(layer, workspace)) return;
    kLaunch(task_of(layer, workspace), stream);
    CUDA_CHECK_LAUNCH();
}

// Of the version in which the host waits for the counts.
template <auto kLaunch>
void run_waiting(const Layer& layer, Workspace& workspace, cudaStream_t stream) {
    if (!check(layer, workspace)) return;
    kLaunch(task_of(layer, workspace), workspace.host_starts.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// Logits, x and all weights are read once, the result is written. The program, which has the
// logits, subtracts the weights of experts without tokens.
course::Work work_of(const Shape& shape) {
    const auto written = static_cast<double>(shape.tokens * shape.width * sizeof(float));
    const auto read = static_cast<double>(
        (shape.tokens * (shape.experts + shape.hidden) + shape.experts * shape.hidden * shape.width) *
        sizeof(float));
    return {
        .bytes = read + written,
        .written = written,
        .flops = 2.0 * static_cast<double>(shape.pairs()) * static_cast<double>(shape.hidden * shape.width)};
}

}  // namespace

void check_shape(const Shape& shape) {
    constexpr std::size_t kMostPairs = std::size_t{1} << 18;
    constexpr std::size_t kMostNumbers = std::size_t{1} << 20;
    require(shape.experts >= 1 && shape.experts <= kMostExperts, "mixture: experts is ", shape.experts,
            "; expected 1 to ", kMostExperts);
    require(shape.chosen >= 1 && shape.chosen <= kMostChosen && shape.chosen <= shape.experts,
            "mixture: chosen is ", shape.chosen, "; expected 1 to ", kMostChosen,
            ", and at most as many as there are experts (", shape.experts, ")");
    require(shape.tokens <= kMostPairs && shape.pairs() <= kMostPairs, "mixture: ", shape.tokens,
            " tokens choose ", shape.chosen, " experts each; expected at most 2^18 pairs");
    require(shape.hidden <= kMostNumbers && shape.width <= kMostNumbers, "mixture: hidden is ", shape.hidden,
            " and width ", shape.width, "; expected at most 2^20");
}

std::string name(const Shape& shape) {
    return std::to_string(shape.tokens) + "x" + std::to_string(shape.hidden) + "x" +
           std::to_string(shape.width) + "x" + std::to_string(shape.experts) + "x" +
           std::to_string(shape.chosen);
}

Workspace::Workspace(const Shape& shape) : shape_(shape) {
    check_shape(shape);
    choice = course::DeviceBuffer<int>(shape.pairs());
    gate = course::DeviceBuffer<float>(shape.pairs());
    counts = course::DeviceBuffer<int>(shape.experts * course::ceil_div<std::size_t>(shape.pairs(), kBlock));
    starts = course::DeviceBuffer<int>(shape.experts + 1);
    place = course::DeviceBuffer<int>(shape.pairs());
    pair_at = course::DeviceBuffer<int>(shape.pairs());
    result = course::DeviceBuffer<float>(shape.pairs() * shape.width);
    tiles = course::DeviceBuffer<int>(shape.experts + 1);
    host_starts.resize(shape.experts + 1);
}

void route(const Layer& layer, Workspace& workspace, cudaStream_t stream) {
    run<launch_sort>(layer, workspace, stream);
}

void sort_by_expert(const Shape& shape, const float* logits, Workspace& workspace, cudaStream_t stream) {
    Layer layer;
    layer.shape = shape;
    Task task = task_of(layer, workspace);
    task.logits = logits;
    launch_sort(task, stream);
    CUDA_CHECK_LAUNCH();
}

void combine_results(const Shape& shape, const float* gate, const int* place, const float* result, float* out,
                     cudaStream_t stream) {
    Task task{};
    task.out = out;
    task.tokens = static_cast<int>(shape.tokens);
    task.width = static_cast<int>(shape.width);
    task.chosen = static_cast<int>(shape.chosen);
    // `combine` only reads them.
    task.gate = const_cast<float*>(gate);
    task.place = const_cast<int*>(place);
    task.result = const_cast<float*>(result);
    launch_combine(task, stream);
    CUDA_CHECK_LAUNCH();
}

std::span<const Version> versions() {
    static const std::array<Version, 6> list{{
        {"every_token", "a launch for each expert, in which a thread looks whether its token chose it",
         run<launch_every_token>, work_of},
        {"sorted", "tokens in the order of their experts; a launch of tiles for each expert",
         run_waiting<launch_sorted>, work_of},
        {"one_launch_atomic", "one launch for all experts, as large as if all tokens chose each; atomics",
         run<launch_one_launch_atomic>, work_of},
        {"one_launch_gather", "each product has its place; a second kernel adds up, without atomics",
         run<launch_one_launch_gather>, work_of},
        {"tile_list", "one launch for a list of the tiles that exist", run<launch_tile_list>, work_of},
        {"resident", "as many blocks as fit take tile after tile", run<launch_resident>, work_of},
    }};
    return list;
}

}  // namespace day27
