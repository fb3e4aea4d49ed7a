// Day 34, beyond: host code of the versions for Hopper: why not, tensor maps, workspace.
#include <cstddef>
#include <string>

#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_map.hpp"
#include "hopper.cuh"
#include "launch.cuh"

namespace day34 {
namespace {

std::string constraint(const Shape& shape) {
    if (shape.dim % 8 != 0)
        return "needs a dim that is a multiple of 8; this one is " + std::to_string(shape.dim);
    return course::why_no_hopper();
}

template <class T>
CUtensorMap map_of(const HeadsView<const T>& view, unsigned box_rows) {
    const Extents e = view.extents();
    return course::make_tensor_map(view.data(), e.length, e.dim, view.strides().row, {e.heads, e.batch},
                                   {view.strides().head, view.strides().batch}, box_rows);
}

template <int D, bool ORDERED, class T>
void launch_kernels(const Gradient<T>& g, cudaStream_t stream) {
    const Extents q = g.q.extents();
    const Extents k = g.k.extents();
    const std::size_t heads = q.batch * q.heads;
    const std::size_t row_tiles = course::ceil_div<std::size_t>(q.length, kRows<D>);
    const std::size_t key_tiles = course::ceil_div<std::size_t>(k.length, kKeys);
    const RowTermsBuffer rows(g, stream);
    const course::StreamBuffer<float> sums(heads * row_tiles * kConsumers * kPart, stream);
    sums.clear();
    const course::StreamBuffer<unsigned> turns(1 + heads * row_tiles, stream);
    if (ORDERED) turns.clear();
    const Maps maps{.q = map_of(g.q, kRows<D>),
                    .d_out = map_of(g.d_out, kRows<D>),
                    .k = map_of(g.k, kKeys),
                    .v = map_of(g.v, kKeys)};
    const Problem<T> problem{.dk = g.dk,
                             .dv = g.dv,
                             .terms = rows.terms(),
                             .dq = sums.data(),
                             .done = turns.data() + 1,
                             .ticket = turns.data(),
                             .row_tiles = static_cast<int>(row_tiles),
                             .key_tiles = static_cast<int>(key_tiles),
                             .diagonal = g.causal ? g.k.length() - g.q.length() : 1 << 30,
                             .scale = g.scale};
    launch_attention_gradients<T, D, ORDERED>(maps, problem, stream);
    launch_finish_queries<T, D>(g.dq, sums.data(), static_cast<int>(row_tiles), g.scale, stream);
    CUDA_CHECK_LAUNCH();
}

template <bool ORDERED, class T>
void launch(const Gradient<T>& g, cudaStream_t stream) {
    if (!check_arguments(g)) return;
    const std::string reason = constraint({.dim = g.q.extents().dim});
    course::require(reason.empty(), "attention backward: ", reason);
    require_aligned_rows(g);
    if (cleared(g, stream)) return;
    if (g.q.dim() <= 64) {
        launch_kernels<64, ORDERED>(g, stream);
    } else {
        launch_kernels<128, ORDERED>(g, stream);
    }
}

}  // namespace

template <class T>
Version<T> hopper() {
    return {"hopper", "TMA and wgmma; dQ is added in bulk, in any order", launch<false, T>, work<T>,
            constraint};
}
template <class T>
Version<T> hopper_ordered() {
    return {"hopper_ordered", "blocks add to dQ in turns: the same bits every time", launch<true, T>, work<T>,
            constraint};
}
template Version<__half> hopper();
template Version<__nv_bfloat16> hopper();
template Version<__half> hopper_ordered();
template Version<__nv_bfloat16> hopper_ordered();

}  // namespace day34
