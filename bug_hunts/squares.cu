// Bug hunt "squares": how crowded is it around a point?
//
//   out[i] = how many points are in the square of point i, which is at (in(0, i), in(1, i))
//
// The square from -1 to 1 is divided into four if it has more than 32 points, each of these squares
// in the same way, and so on, up to eight times.
//
//   ./course run bug_hunts --only squares
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/stream_buffer.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;
constexpr unsigned kCapacity = 32;
constexpr int kDeepest = 8;
constexpr unsigned kNodes = ((1u << 2 * (kDeepest + 1)) - 1) / 3;  // 1 + 4 + ... + 4^8

// The column or row of a coordinate among 2^9. Those beyond an edge are at it.
__device__ unsigned cell_of(float coordinate) {
    constexpr unsigned kLast = (2u << kDeepest) - 1;
    const float scaled = (coordinate + 1) * (1 << kDeepest);
    if (!(scaled > 0)) return 0;
    return scaled < kLast ? static_cast<unsigned>(scaled) : kLast;
}

// The points of a node. All of them are in the root, whose counter is not used.
__device__ float points_of(const unsigned* counts, unsigned node, std::size_t points) {
    return node == 0 ? static_cast<float>(points) : static_cast<float>(counts[node]);
}

// Idea: a complete tree in an array: node i has the children 4 i + 1 to 4 i + 4. In each launch all
// points of a level go one level down, if their node is crowded.
// Cost removed: memory for nodes that are made while the tree grows, and pointers to them.
// Still limits it: an atomic for each point and level.
__global__ void descend(DeviceMatrix<const float> in, int depth, unsigned* counts, unsigned* nodes) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i >= in.cols()) return;
    const unsigned first = ((1u << 2 * depth) - 1) / 3;  // the first node of this level
    const unsigned node = nodes[i];
    if (node < first || !(points_of(counts, node, in.cols()) > kCapacity)) return;
    const unsigned right = cell_of(in(0, i)) >> (kDeepest - depth) & 1;
    const unsigned above = cell_of(in(1, i)) >> (kDeepest - depth) & 1;
    nodes[i] = 4 * node + 1 + right + 2 * above;
    atomicAdd(&counts[nodes[i]], 1u);
}

__global__ void write_counts(DeviceSpan<float> out, const unsigned* counts, const unsigned* nodes) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (i < out.size()) out[i] = points_of(counts, nodes[i], out.size());
}

}  // namespace

void squares(DeviceMatrix<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require_shape("squares", "in", in, {2, in.cols()});
    require_size("squares", "out", out, in.cols());
    require_apart("squares", in, as_row(out));
    const unsigned blocks = course::blocks_for(out.size(), kBlock);
    if (blocks == 0) return;
    const course::StreamBuffer<unsigned> counts(kNodes, stream);
    const course::StreamBuffer<unsigned> nodes(out.size(), stream);
    counts.clear();
    nodes.clear();
    for (int depth = 0; depth < kDeepest; ++depth) {
        descend<<<blocks, kBlock, 0, stream>>>(in, depth, counts.data(), nodes.data());
        CUDA_CHECK_LAUNCH();
    }
    write_counts<<<blocks, kBlock, 0, stream>>>(out, counts.data(), nodes.data());
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
