// Day 27's host code: checks of arguments, the workspace, and the list of versions. The kernels and
// their launches are in router.cuh and mixture_of_experts.cuh.
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "mixture_of_experts.cuh"
#include "mixture_of_experts.hpp"

namespace day27 {
namespace {

using course::require;

constexpr std::size_t kMostPairs = std::size_t{1} << 18;
constexpr std::size_t kMostNumbers = std::size_t{1} << 20;

void check_shape(const Shape& shape) {
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

// Returns false if there is nothing to write.
bool check(const Layer& layer, const Workspace& workspace) {
    const Shape& shape = layer.shape;
    check_shape(shape);
    const auto same_size = [](const char* what, std::size_t size, std::size_t expected) {
        require(size == expected, "mixture: ", what, " has ", size, " elements; expected ", expected);
    };
    same_size("logits", layer.logits.size(), shape.tokens * shape.experts);
    same_size("x", layer.x.size(), shape.tokens * shape.hidden);
    same_size("weights", layer.weights.size(), shape.experts * shape.hidden * shape.width);
    same_size("out", layer.out.size(), shape.tokens * shape.width);
    require(!overlap(layer.out, layer.logits) && !overlap(layer.out, layer.x) &&
                !overlap(layer.out, layer.weights),
            "mixture: out overlaps an input; expected memory of its own");
    require(name(workspace.shape()) == name(shape), "mixture: the workspace is for ", name(workspace.shape()),
            ", the problem is ", name(shape), "; expected the same");
    return shape.tokens > 0 && shape.width > 0;
}

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

// Logits, x and all weights are read once, the result is written.
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

void combine_results(const Layer& layer, float* gate, int* place, float* result, cudaStream_t stream) {
    Task task{};
    task.out = layer.out.data();
    task.tokens = static_cast<int>(layer.shape.tokens);
    task.width = static_cast<int>(layer.shape.width);
    task.chosen = static_cast<int>(layer.shape.chosen);
    task.gate = gate;
    task.place = place;
    task.result = result;
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
