// Day 34's host code of the FP32 versions: workspace and checks. And the lists of all versions.
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "attention_backward.cuh"
#include "attention_backward.hpp"
#include "beyond/one_pass.cuh"
#include "common/check/require.hpp"
#include "common/device/tensor_core_support.hpp"
#include "launch.cuh"

namespace day34 {
namespace {

void naive(const Gradient<float>& g, cudaStream_t stream) {
    if (!check_arguments(g)) return;
    const Extents q = g.q.extents();
    const Extents k = g.k.extents();
    const std::size_t scores = heads_of(q) * q.length * k.length;
    if (scores == 0) {  // every sum has no terms
        if (elements_of(q) > 0) launch_naive_queries(g, nullptr, stream);
        if (elements_of(k) > 0) launch_naive_keys(g, nullptr, nullptr, stream);
        CUDA_CHECK_LAUNCH();
        return;
    }
    const RowTermsBuffer rows(g, stream);
    const course::StreamBuffer<float> p(scores, stream);
    const course::StreamBuffer<float> ds(scores, stream);
    launch_naive_weights(g, rows.terms(), p.data(), ds.data(), stream);
    launch_naive_keys(g, p.data(), ds.data(), stream);
    launch_naive_queries(g, ds.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// Calls action(std::integral_constant<int, D>) with the D that has room for dim.
template <class Action>
void with_columns(std::size_t dim, Action action) {
    if (dim <= 64) {
        action(std::integral_constant<int, 64>());
    } else {
        action(std::integral_constant<int, 128>());
    }
}

std::string tiles_constraint(const Shape& shape) {
    return course::why_too_little_shared(shape.dim <= 64 ? sizeof(Tiles<64>) : sizeof(Tiles<128>));
}

void require_room(const Gradient<float>& g) {
    const std::string reason = tiles_constraint({.dim = g.q.extents().dim});
    course::require(reason.empty(), "attention backward: ", reason);
}

void recompute(const Gradient<float>& g, cudaStream_t stream) {
    if (!check_arguments(g)) return;
    require_room(g);
    std::optional<RowTermsBuffer> rows;
    if (g.q.length() > 0) rows.emplace(g, stream);
    const RowTerms terms = rows ? rows->terms() : RowTerms{};
    with_columns(g.q.extents().dim, [&](auto columns) {
        constexpr int D = columns();
        if (elements_of(g.q.extents()) > 0) launch_recompute_queries<D>(g, terms, stream);
        if (elements_of(g.k.extents()) > 0) launch_recompute_keys<D>(g, terms, stream);
    });
}

template <bool ORDERED>
void one_pass_version(const Gradient<float>& g, cudaStream_t stream) {
    if (!check_arguments(g)) return;
    require_room(g);
    const Extents q = g.q.extents();
    clear(g.dq, stream);
    std::optional<RowTermsBuffer> rows;
    if (q.length > 0) rows.emplace(g, stream);
    const RowTerms terms = rows ? rows->terms() : RowTerms{};
    const course::StreamBuffer<unsigned> turns(1 + heads_of(q) * (terms.padded / kTile), stream);
    if (ORDERED) turns.clear();
    with_columns(q.dim, [&](auto columns) {
        constexpr int D = columns();
        if (elements_of(g.k.extents()) > 0)
            launch_one_pass<D, ORDERED>(g, terms, Turns{turns.data(), turns.data() + 1}, stream);
    });
}

}  // namespace

template <>
std::span<const Version<float>> versions() {
    static const std::vector<Version<float>> list = {
        {"naive", "stores P and dS, a thread per element", naive, work<float>},
        {"recompute", "P and dS tile by tile, dQ in one kernel, dK and dV in another", recompute, work<float>,
         tiles_constraint},
        {"one_pass_atomic", "S and dP once; blocks add to dQ by atomics, in any order",
         one_pass_version<false>, work<float>, tiles_constraint},
        {"one_pass_ordered", "blocks add to dQ in turns: the same bits every time", one_pass_version<true>,
         work<float>, tiles_constraint},
    };
    return list;
}

template <>
std::span<const Version<__half>> versions() {
    static const std::vector<Version<__half>> list = {tensor_cores<__half>(), hopper<__half>(),
                                                      hopper_ordered<__half>()};
    return list;
}
template <>
std::span<const Version<__nv_bfloat16>> versions() {
    static const std::vector<Version<__nv_bfloat16>> list = {
        tensor_cores<__nv_bfloat16>(), hopper<__nv_bfloat16>(), hopper_ordered<__nv_bfloat16>()};
    return list;
}

}  // namespace day34
