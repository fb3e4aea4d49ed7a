// Checks of the arguments of all launchers, of either type of x.
#pragma once

#include <cstddef>

#include "common/check/require.hpp"
#include "mixture_of_experts.hpp"

namespace day27 {

// Throws std::invalid_argument.
void check_shape(const Shape& shape);

// Throws std::invalid_argument. Returns false if there is nothing to write.
template <class T>
bool check(const LayerOf<T>& layer, const Workspace& workspace) {
    const Shape& shape = layer.shape;
    check_shape(shape);
    const auto same_size = [](const char* what, std::size_t size, std::size_t expected) {
        course::require(size == expected, "mixture: ", what, " has ", size, " elements; expected ", expected);
    };
    same_size("logits", layer.logits.size(), shape.tokens * shape.experts);
    same_size("x", layer.x.size(), shape.tokens * shape.hidden);
    same_size("weights", layer.weights.size(), shape.experts * shape.hidden * shape.width);
    same_size("out", layer.out.size(), shape.tokens * shape.width);
    course::require(!overlap(layer.out, layer.logits) && !overlap(layer.out, layer.x) &&
                        !overlap(layer.out, layer.weights),
                    "mixture: out overlaps an input; expected memory of its own");
    course::require(name(workspace.shape()) == name(shape), "mixture: the workspace is for ",
                    name(workspace.shape()), ", the problem is ", name(shape), "; expected the same");
    return shape.tokens > 0 && shape.width > 0;
}

}  // namespace day27
