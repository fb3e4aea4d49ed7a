// A layer of a mixture of experts: the host API of day 27. The kernels are in router.cuh and
// mixture_of_experts.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day27 {

struct Shape {
    std::size_t tokens = 0;
    std::size_t hidden = 0;   // numbers of a token
    std::size_t width = 0;    // numbers of a result
    std::size_t experts = 1;  // 1 to 256
    std::size_t chosen = 1;   // experts of a token, k: 1 to 8

    std::size_t pairs() const { return tokens * chosen; }
};

// "4096x1024x1024x64x2": tokens x hidden x width x experts x chosen.
std::string name(const Shape& shape);

// Each token chooses the experts with the largest logits, of equal ones the lower expert. A NaN
// counts as -Inf. The gates are the softmax of the chosen logits; if all of them are -Inf, the
// gates are 0. No token is dropped, however many choose the same expert. All arrays are packed.
// T: the type of x and of the weights, float or __nv_bfloat16 (beyond/).
template <class T>
struct LayerOf {
    Shape shape;
    course::DeviceSpan<const float> logits;  // [tokens, experts], of the router
    course::DeviceSpan<const T> x;           // [tokens, hidden]
    course::DeviceSpan<const T> weights;     // [experts, hidden, width]
    course::DeviceSpan<float> out;           // [tokens, width]: sum of gate times x W
};
using Layer = LayerOf<float>;

// Device memory for the routing and the products. Two launches that may run at the same time, on
// two streams, need two workspaces.
class Workspace {
  public:
    // On the current device. Throws std::invalid_argument for a shape that launchers refuse;
    // CudaError.
    explicit Workspace(const Shape& shape);

    const Shape& shape() const { return shape_; }

    course::DeviceBuffer<int> choice, counts, starts, place, pair_at, tiles;
    course::DeviceBuffer<float> gate, result;
    std::vector<int> host_starts;

  private:
    Shape shape_;
};

// Queues the work on `stream`; `sorted` also waits for a part of it. Throws
// std::invalid_argument for extents that do not fit together or are too large (2^18 pairs, 2^20
// hidden or width), an out that overlaps an input, and a workspace for another shape. Throws
// CudaError if a launch fails.
using Launcher = void (*)(const Layer& layer, Workspace& workspace, cudaStream_t stream);

// The versions, slow to fast.
using Version = course::Version<Launcher, Shape>;
std::span<const Version> versions();

// Only the routing, as all versions but every_token do it: choice, gate, starts, place and pair_at
// of `workspace`.
void route(const Layer& layer, Workspace& workspace, cudaStream_t stream);

// The lesson's first and last steps alone, unchecked, for the peer and for beyond/: the routing;
// and the weighted sum of each token's results. `gate` and `place` have a number for each pair;
// pair p's result is row place[p] of `result`.
void sort_by_expert(const Shape& shape, const float* logits, Workspace& workspace, cudaStream_t stream);
void combine_results(const Shape& shape, const float* gate, const int* place, const float* result, float* out,
                     cudaStream_t stream);

// --- Reference -----------------------------------------------------------------------------------

// choice, starts, place and pair_at are exact. The gates are in double.
struct Routing {
    std::vector<int> choice, starts, place, pair_at;
    std::vector<double> gate;
};
Routing route_on_cpu(const Shape& shape, std::span<const float> logits);

// Are the sums of a product rounded, or are terms cut off before they are added, as tensor cores
// do? Rounding errors cancel in part; what is cut off adds up. The last: the product of an expert
// is rounded to BF16, too.
enum class Sums { kRounded, kCutOff, kCutOffToBfloat16 };

// The result in double, and a bound of |got - value| for each element. Only of the tokens
// [first, first + count).
struct Expected {
    std::vector<double> value;
    std::vector<double> bound;
};
Expected layer_on_cpu(const Shape& shape, std::span<const float> logits, std::span<const float> x,
                      std::span<const float> weights, std::size_t first, std::size_t count,
                      Sums sums = Sums::kRounded);

}  // namespace day27
