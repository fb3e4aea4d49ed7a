// Host API of day 34: the gradients of attention. The kernels are in attention_backward.cuh (FP32)
// and beyond/ (FP32 in one pass, FP16 and BF16).
//
// For out = softmax(scale Q K^T) V (common/bench/attention.hpp) and a loss whose gradient with
// respect to out is d_out, launchers compute the gradients with respect to Q, K and V. They need
// `out` and the log-sum-exp of each row, lse[i] = log sum_j exp(scale q[i] . k[j]), from the
// forward pass; -Inf for a row that sees no key.
//
// NaN and Inf in an input may spread to all gradients of their head.
//
// Methods: T. Dao, "FlashAttention-2", 2023; J. Shah, G. Bikshandi, Y. Zhang, V. Thakkar, P.
// Ramani, T. Dao, "FlashAttention-3", 2024.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/bench/attention.hpp"
#include "common/bench/version.hpp"
#include "common/bench/work.hpp"
#include "common/device/device_view.hpp"

namespace day34 {

using course::attention::Extents;
using course::attention::HeadsView;
using course::attention::Shape;

// T: float, __half, __nv_bfloat16.
template <class T>
struct Gradient {
    HeadsView<const T> q;                 // [batch, heads, length_q, dim]
    HeadsView<const T> k;                 // [batch, heads, length_k, dim]
    HeadsView<const T> v;                 // as k
    HeadsView<const T> out;               // as q: the result of the forward pass
    HeadsView<const T> d_out;             // as q
    course::DeviceSpan<const float> lse;  // [batch, heads, length_q], packed
    HeadsView<T> dq;                      // as q
    HeadsView<T> dk;                      // as k
    HeadsView<T> dv;                      // as k
    float scale = 1;
    bool causal = false;
};

// Queues the work on `stream`. Workspace comes from the stream's memory pool. Extents may be 0.
// Throws std::invalid_argument for extents that do not fit together; dim > 128; a length of 2^30 or
// more; a scale that is not a finite number above 0; a gradient whose elements coincide or whose
// memory, from the first element to the last, overlaps that of another argument; and a problem that
// the version cannot run. Throws CudaError if a launch or an allocation fails.
template <class T>
using Launcher = void (*)(const Gradient<T>& gradient, cudaStream_t stream);
template <class T>
using Version = course::Version<Launcher<T>, Shape>;

// The versions, slow to fast. `naive`, `recompute` and those whose name ends in "ordered" give the
// same bits every time.
template <class T>
std::span<const Version<T>> versions();

// The checks of every launcher, which throw as described above. Returns false if there is nothing
// to write.
template <class T>
bool check_arguments(const Gradient<T>& gradient);

// The forward pass by a plain kernel: out and lse for `gradient.q`, `k` and `v`. For programs that
// have no forward pass of their own.
template <class T>
void forward(const Gradient<T>& gradient, HeadsView<T> out, course::DeviceSpan<float> lse,
             cudaStream_t stream);

// The least work: every tensor moved once, and five products of the visible scores.
template <class T>
course::Work work(const Shape& shape);

// --- Reference -----------------------------------------------------------------------------------

// Inputs of one head, packed: q, out and d_out length_q x dim, k and v length_k x dim.
template <class T>
struct Head {
    std::span<const T> q, k, v, out, d_out;
    std::span<const float> lse;
};

struct GradientRow {
    std::vector<double> value;  // dim of them
    std::vector<double> bound;  // of |got - value|
};
struct KeyGradient {
    GradientRow dk, dv;
};

// A row of dQ, and one of dK and dV, in double. The README derives the bounds.
template <class T>
GradientRow query_gradient(const Head<T>& head, const Shape& shape, double scale,
                           const course::attention::Precision& precision, std::size_t row);
template <class T>
KeyGradient key_gradient(const Head<T>& head, const Shape& shape, double scale,
                         const course::attention::Precision& precision, std::size_t key);

struct Forward {
    std::vector<double> out;  // length_q x dim
    std::vector<double> lse;  // length_q
};

// The forward pass of one head, in double.
Forward forward_on_cpu(std::span<const double> q, std::span<const double> k, std::span<const double> v,
                       const Shape& shape, double scale);

}  // namespace day34
