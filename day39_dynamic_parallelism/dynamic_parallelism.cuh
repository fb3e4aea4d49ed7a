// Day 39: kernels that launch kernels.                              PMPP chapter 21 (4th edition)
//
//   version           what is new                                       what limits it
//   block_per_curve   a block for each curve, whatever its work         latency: idle threads
//   children          a thread launches a grid for its curve            a launch for each curve
//   own_streams       each of these grids has a stream of its own       a launch for each curve
//   scanned           no launch: a block shares out its curves' points  latency
//   tree_children     a block launches a grid for what it has split     latency
//   tree_levels       the host launches a grid for each level           latency
//
// Two problems whose work is not known before a kernel has looked at the data. The first four
// versions draw curves: as many points on each as its bend needs. The last two build a quadtree: a
// square with too many points becomes four squares. Each kernel is followed by its launch.
// beyond/ builds the tree without the host, and without children.
//
//   ./course run day39                                     every version, verified and timed
//   ./course run day39 --program                           program.cu: a tree, from main() on
//   CUDA_ON_CPU_CHILDREN=early ./course test day39         children before their parents go on
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/device/grid.hpp"
#include "pending.hpp"
#include "shapes.hpp"

namespace day39 {

// ---- Curves -------------------------------------------------------------------------------------

// The number of straight segments that stay within `tolerance` of the curve. With n segments they
// are off by at most |p0 - 2 p1 + p2| / (4 n^2).
__host__ __device__ inline unsigned segments_of(const Curve& c, float tolerance) {
    const float x = c.p0.x - 2 * c.p1.x + c.p2.x;
    const float y = c.p0.y - 2 * c.p1.y + c.p2.y;
    const float n = ceilf(sqrtf(sqrtf(x * x + y * y) / (4 * tolerance)));
    if (!(n > 1)) return 1;  // also where a coordinate is NaN
    return n < kMostSegments ? static_cast<unsigned>(n) : kMostSegments;
}

// Point i of `segments` + 1.
__device__ inline float2 point_of(const Curve& c, unsigned i, unsigned segments) {
    const float t = static_cast<float>(i) / static_cast<float>(segments);
    const float u = 1 - t;
    return {u * u * c.p0.x + 2 * u * t * c.p1.x + t * t * c.p2.x,
            u * u * c.p0.y + 2 * u * t * c.p1.y + t * t * c.p2.y};
}

// What the versions need. Curve c has counts[c] points, from points[c * kMostPoints] on.
struct Drawing {
    const Curve* curves;
    unsigned n;
    float tolerance;
    unsigned* counts;
    float2* points;
};

constexpr unsigned kCurveBlock = 64;

// Idea: a block for each curve; its threads share out the points.
// Cost removed: none; this is the first version.
// Still limits it: latency. A curve of two points occupies 64 threads, and one of 256 keeps them
// for four rounds: of 32 lanes, 23 have work on average, and warps are 30 % of what an SM can hold.
// 156,250 curves take 97.0 us on an H200, and 26.6 if threads share out their points (`scanned`).
__global__ void block_per_curve(Drawing d) {
    const Curve curve = d.curves[blockIdx.x];
    const unsigned segments = segments_of(curve, d.tolerance);
    float2* const points = d.points + std::size_t{blockIdx.x} * kMostPoints;
    for (unsigned i = threadIdx.x; i <= segments; i += kCurveBlock)
        points[i] = point_of(curve, i, segments);
    if (threadIdx.x == 0) d.counts[blockIdx.x] = segments + 1;
}

inline void launch_block_per_curve(const Drawing& d, cudaStream_t stream) {
    block_per_curve<<<d.n, kCurveBlock, 0, stream>>>(d);
}

// The child: a thread for each point of one curve.
__global__ void draw(Curve curve, unsigned segments, float2* points) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= segments) points[i] = point_of(curve, i, segments);
}

// Idea: a thread for each curve. The thread finds how many points it needs, and launches a grid of
// that size. The parent grid is complete when its children are, so the host, and the next kernel in
// the stream, see all points.
// Cost removed: threads without a point.
// Still limits it: the launches, one for each curve. 16,384 curves take 10.8 ms on an H200, 12.4 us
// without launches (`block_per_curve`). And all threads of a block launch into one default stream,
// so their children run one after another.
__global__ void children(Drawing d) {
    const unsigned c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= d.n) return;
    const Curve curve = d.curves[c];  // a copy: a child cannot reach its parent's registers
    const unsigned segments = segments_of(curve, d.tolerance);
    const unsigned blocks = course::ceil_div(segments + 1, kCurveBlock);
    draw<<<blocks, kCurveBlock>>>(curve, segments, d.points + std::size_t{c} * kMostPoints);
    d.counts[c] = cudaGetLastError() == cudaSuccess ? segments + 1 : 0;  // 0: no room for the launch
}

// 2,048 child grids may wait to begin, unless the host asks for more before the launch
// (pending.hpp).
inline void launch_children(const Drawing& d, cudaStream_t stream) {
    allow_pending(d.n);
    children<<<course::blocks_for(d.n, kCurveBlock), kCurveBlock, 0, stream>>>(d);
}

// Idea: a stream for each child, which its thread creates and destroys. Destroying a stream lets
// the work in it finish first. Streams of a kernel are cudaStreamNonBlocking.
// Cost removed: children of the same block waiting for one another.
// Still limits it: the launches, as many as before. 16,384 curves take 6.16 ms on an H200.
__global__ void own_streams(Drawing d) {
    const unsigned c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= d.n) return;
    const Curve curve = d.curves[c];
    const unsigned segments = segments_of(curve, d.tolerance);
    const unsigned blocks = course::ceil_div(segments + 1, kCurveBlock);
    cudaStream_t own;
    if (cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess) {
        d.counts[c] = 0;
        return;
    }
    draw<<<blocks, kCurveBlock, 0, own>>>(curve, segments, d.points + std::size_t{c} * kMostPoints);
    cudaStreamDestroy(own);
    d.counts[c] = cudaGetLastError() == cudaSuccess ? segments + 1 : 0;
}

inline void launch_own_streams(const Drawing& d, cudaStream_t stream) {
    allow_pending(d.n);
    own_streams<<<course::blocks_for(d.n, kCurveBlock), kCurveBlock, 0, stream>>>(d);
}

constexpr unsigned kShared = 32;  // curves of a block: one for each lane of a warp
constexpr unsigned kScanBlock = 128;

// Idea: no children. A block takes 32 curves. Warp 0 counts their points and scans the counts (day
// 16). Then all threads of the block share out all the points: a binary search in the scan finds
// the curve that point i belongs to.
// Cost removed: the launches. A thread without a point is one of at most 127 at the block's end.
// Still limits it: latency. A block scans and searches before it draws, and blocks with many points
// end later than others: warps are 21 % of what an SM can hold.
__global__ void scanned(Drawing d) {
    __shared__ Curve curves[kShared];
    __shared__ unsigned ends[kShared];  // points of curves 0 to this one
    const unsigned first = blockIdx.x * kShared;
    if (threadIdx.x < kShared) {
        const unsigned c = first + threadIdx.x;
        unsigned end = 0;
        if (c < d.n) {
            curves[threadIdx.x] = d.curves[c];
            d.counts[c] = end = segments_of(curves[threadIdx.x], d.tolerance) + 1;
        }
        for (unsigned step = 1; step < kShared; step *= 2) {
            const unsigned before = __shfl_up_sync(~0u, end, step);
            if (threadIdx.x >= step) end += before;
        }
        ends[threadIdx.x] = end;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < ends[kShared - 1]; i += kScanBlock) {
        unsigned c = 0;  // the number of curves that end at or before point i
        for (unsigned step = kShared / 2; step != 0; step /= 2)
            if (ends[c + step - 1] <= i) c += step;
        const unsigned begin = c == 0 ? 0 : ends[c - 1];
        d.points[std::size_t{first + c} * kMostPoints + i - begin] =
            point_of(curves[c], i - begin, ends[c] - begin - 1);
    }
}

inline void launch_scanned(const Drawing& d, cudaStream_t stream) {
    scanned<<<course::blocks_for(d.n, kShared), kScanBlock, 0, stream>>>(d);
}

// ---- A quadtree ---------------------------------------------------------------------------------

// A tree being built. The points of a node of even depth are in `even`, at node.begin to
// node.end - 1; those of a node of odd depth are in `odd`.
struct Tree {
    float2* even;
    float2* odd;
    Node* nodes;
    Header* header;
    Limits limits;
};

constexpr unsigned kTreeBlock = 128;

// Before the first split: the root is a leaf with all points. The header is 0.
__global__ void plant(Tree t, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) {
        t.nodes[0] = {.begin = 0, .end = n, .depth = 0, .x = 0, .y = 0, .children = 0};
        t.header->nodes = 1;
    }
    if (i < n && !in_unit_square(t.even[i])) atomicAdd(&t.header->bad_points, 1u);
}

inline void launch_plant(const Tree& t, unsigned n, cudaStream_t stream) {
    plant<<<course::blocks_for(std::max(n, 1u), kTreeBlock), kTreeBlock, 0, stream>>>(t, n);
}

// A block splits a node, if it has more points than a leaf may have: it counts the points of each
// quadrant, appends four nodes, and moves the points to their places in the other array. Returns
// the index of the first of the four nodes; 0 if the node stays a leaf.
__device__ inline unsigned split(const Tree& t, unsigned index) {
    __shared__ unsigned counts[4];
    __shared__ unsigned places[4];
    __shared__ unsigned first_quarter;
    const Node node = t.nodes[index];
    if (!must_split(node, t.limits)) return 0;
    const float2* const from = node.depth % 2 == 0 ? t.even : t.odd;
    float2* const to = node.depth % 2 == 0 ? t.odd : t.even;
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned i = node.begin + threadIdx.x; i < node.end; i += kTreeBlock)
        atomicAdd(&counts[quadrant_of(from[i], node)], 1u);
    __syncthreads();
    if (threadIdx.x == 0) {
        first_quarter = atomicAdd(&t.header->nodes, 4u);
        unsigned begin = node.begin;
        for (unsigned q = 0; q < 4; ++q) {
            places[q] = begin;
            t.nodes[first_quarter + q] = child_of(node, q, begin, begin + counts[q]);
            begin += counts[q];
        }
        t.nodes[index].children = first_quarter;
    }
    __syncthreads();
    for (unsigned i = node.begin + threadIdx.x; i < node.end; i += kTreeBlock)
        to[atomicAdd(&places[quadrant_of(from[i], node)], 1u)] = from[i];
    return first_quarter;
}

// When all nodes are there: counts the leaves, and copies the points of those of odd depth, so that
// `even` has the points of all leaves.
__global__ void finish(Tree t) {
    const unsigned nodes = t.header->nodes;
    for (unsigned index = blockIdx.x; index < nodes; index += gridDim.x) {
        const Node node = t.nodes[index];
        if (node.children != 0) continue;
        if (threadIdx.x == 0) atomicAdd(&t.header->leaves, 1u);
        if (node.depth % 2 == 0) continue;
        for (unsigned i = node.begin + threadIdx.x; i < node.end; i += kTreeBlock)
            t.even[i] = t.odd[i];
    }
}

constexpr unsigned kFinishBlocks = 1024;

inline void launch_finish(const Tree& t, cudaStream_t stream) {
    finish<<<kFinishBlocks, kTreeBlock, 0, stream>>>(t);
}

// A block for each of four nodes, `first` to `first` + 3, or for the root alone. A block whose
// children must be split again launches a grid for them. Fire and forget: in no stream, and without
// an order beside other grids.
//
// A launch makes visible to its grid what the launching thread has written. The barrier makes that
// the writes of the whole block: without it the child may read points that are not there yet.
__global__ void grow(Tree t, unsigned first) {
    const unsigned quarters = split(t, first + blockIdx.x);
    __syncthreads();
    if (threadIdx.x != 0 || quarters == 0) return;
    bool again = false;
    for (unsigned q = 0; q < 4; ++q)
        again |= must_split(t.nodes[quarters + q], t.limits);
    if (!again) return;
    grow<<<4, kTreeBlock, 0, cudaStreamFireAndForget>>>(t, quarters);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) atomicExch(&t.header->launch_error, static_cast<unsigned>(error));
}

// Idea: recursion. The grid of the root launches grids for its quadrants, and so on. What comes
// after all of them is a tail launch: it begins when this grid and its children are complete. (A
// kernel cannot wait for its children: CUDA 12 has removed cudaDeviceSynchronize() from kernels.)
// Cost removed: the host, which needs to know nothing of the tree.
// Still limits it: latency (counters: no unit is above 15 %). One block splits the root, four
// blocks the next level.
__global__ void tree_children(Tree t) {
    grow<<<1, kTreeBlock, 0, cudaStreamFireAndForget>>>(t, 0);
    finish<<<kFinishBlocks, kTreeBlock, 0, cudaStreamTailLaunch>>>(t);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) atomicExch(&t.header->launch_error, static_cast<unsigned>(error));
}

// Grids that wait have different points, and more of them than a leaf.
inline void launch_tree_children(const Tree& t, unsigned n, cudaStream_t stream) {
    allow_pending(n / (std::size_t{t.limits.capacity} + 1) + 2);
    tree_children<<<1, 1, 0, stream>>>(t);
}

// Idea: the host launches a grid for each level, a block for each of its nodes, which are adjacent.
// It copies the number of nodes before it launches the next level.
// Cost removed: a launch for each four nodes.
// Still limits it: latency (counters: warps wait for loads 74 % of their time, and no unit is above
// 15 %). The host waits for each level, and one block splits the root.
__global__ void tree_levels(Tree t, unsigned first) {
    split(t, first + blockIdx.x);
}

// One level: nodes first to end - 1.
inline void launch_tree_levels(const Tree& t, unsigned first, unsigned end, cudaStream_t stream) {
    tree_levels<<<end - first, kTreeBlock, 0, stream>>>(t, first);
}

}  // namespace day39
