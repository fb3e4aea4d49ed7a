// Who multiplies the matrices of attention: the day's own kernels, or the ladder's.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <span>

#include "attention.hpp"
#include "common/variant.hpp"

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

// Makes one, with scratch memory for products of these shapes. (Others work too, perhaps slower.)
using MakeMultiplier = std::unique_ptr<Multiplier> (*)(std::span<const ProductShape> shapes);

// "tiled", "thread_tile" and "ladder".
using Method = course::Variant<MakeMultiplier, ProductShape>;
std::span<const Method> methods();

}  // namespace day25
