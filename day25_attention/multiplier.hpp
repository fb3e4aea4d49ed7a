// Who multiplies the matrices of attention: the day's own kernels, or the ladder's; and whether attention is fused.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <span>

#include "attention.hpp"
#include "common/bench/variant.hpp"

namespace day25 {

class Multiplier {
  public:
    Multiplier() = default;
    Multiplier(const Multiplier&) = delete;
    Multiplier& operator=(const Multiplier&) = delete;
    virtual ~Multiplier() = default;

    // Queues a product. Two that may run at the same time need a Multiplier each: they may have scratch memory.
    virtual void multiply(const Product& product, cudaStream_t stream) = 0;

    // May Product::transpose_b be set?
    virtual bool takes_transposed() const = 0;
};

// How SelfAttention computes.
struct Means {
    // Makes the multiplier, with scratch memory for products of these shapes. (Others work too, perhaps slower.)
    std::unique_ptr<Multiplier> (*make)(std::span<const ProductShape> shapes);
    bool fused =
        false;  // day 26 instead of the three parts: no scores in memory; the multiplier is for projections
    course::Arithmetic arithmetic = course::Arithmetic::kFp32;  // kOther: tensor cores may have a part in it
};

// What a method may be unable to do.
struct AttentionTask {
    std::size_t width = 0;        // of a head's queries and keys
    std::size_t value_width = 0;  // and of its values
    bool padding = false;         // is there a mask for padding?
};

// "tiled", "thread_tile", "ladder" and "fused".
using Method = course::Variant<Means, AttentionTask>;
std::span<const Method> methods();

}  // namespace day25
