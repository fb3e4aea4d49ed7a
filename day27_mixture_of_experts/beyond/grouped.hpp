// A layer of a mixture of experts on tensor cores: x and the weights are __nv_bfloat16; logits,
// gates, sums and out are float. Otherwise as in mixture_of_experts.hpp, which has the conventions
// and the workspace.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <span>

#include "common/bench/version.hpp"
#include "mixture_of_experts.hpp"

namespace day27 {

using Bfloat16Layer = LayerOf<__nv_bfloat16>;

// Queues the work on `stream`. Throws as Launcher does. x and weights that are not 16-byte aligned,
// and extents that are no multiple of 8, are slower.
using Bfloat16Launcher = void (*)(const Bfloat16Layer& layer, Workspace& workspace, cudaStream_t stream);

// "tile_each", "persistent". Their constraint names what they need of a GPU.
using GroupedVersion = course::Version<Bfloat16Launcher, Shape>;
std::span<const GroupedVersion> grouped_versions();

}  // namespace day27
