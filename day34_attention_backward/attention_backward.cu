// Day 34's launchers of the FP32 versions, and the lists of all versions.
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "attention_backward.cuh"
#include "attention_backward.hpp"
#include "common/check/require.hpp"
#include "common/device/tensor_core_support.hpp"
#include "launch.cuh"
#include "one_pass.cuh"

namespace day34 {
namespace {

std::size_t heads_of(const Extents& e) {
    return e.batch * e.heads;
}
std::size_t elements_of(const Extents& e) {
    return heads_of(e) * e.length * e.dim;
}

// kernel<<<...>>>(arguments..., threads) with a thread for each of `threads`.
template <class... Parameters, class... Arguments>
void launch_for_each(void (*kernel)(Parameters...), std::size_t threads, cudaStream_t stream,
                     const Arguments&... arguments) {
    if (threads == 0) return;
    course::launch(kernel, {course::blocks_for(threads, kThreads), kThreads, 0, stream}, arguments...,
                   threads);
}

void launch_naive(const Gradient<float>& g, cudaStream_t stream) {
    if (!check_arguments(g)) return;
    const Extents q = g.q.extents();
    const Extents k = g.k.extents();
    const std::size_t scores = heads_of(q) * q.length * k.length;
    if (scores == 0) {  // every sum has no terms
        launch_for_each(naive_queries, elements_of(q), stream, g, nullptr);
        launch_for_each(naive_keys, elements_of(k), stream, g, nullptr, nullptr);
        return;
    }
    const RowTermsBuffer rows(g, stream);
    const course::StreamBuffer<float> p(scores, stream);
    const course::StreamBuffer<float> ds(scores, stream);
    launch_for_each(naive_weights, scores, stream, g, rows.terms(), p.data(), ds.data());
    launch_for_each(naive_keys, elements_of(k), stream, g, p.data(), ds.data());
    launch_for_each(naive_queries, elements_of(q), stream, g, ds.data());
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

// A block for each tile of `of`. Throws std::invalid_argument if a grid cannot have so many.
template <class... Parameters, class... Arguments>
void launch_tiles(void (*kernel)(Parameters...), const Extents& of, std::size_t shared, cudaStream_t stream,
                  const Arguments&... arguments) {
    const std::size_t tiles = heads_of(of) * course::ceil_div<std::size_t>(of.length, kTile);
    if (tiles == 0) return;
    course::launch(kernel, {course::blocks_for(tiles, 1), kThreads, shared, stream}, arguments...);
}

void launch_recompute(const Gradient<float>& g, cudaStream_t stream) {
    if (!check_arguments(g)) return;
    require_room(g);
    std::optional<RowTermsBuffer> rows;
    if (g.q.length() > 0) rows.emplace(g, stream);
    const RowTerms terms = rows ? rows->terms() : RowTerms{};
    with_columns(g.q.extents().dim, [&](auto columns) {
        constexpr int D = columns();
        launch_tiles(recompute_queries<D>, g.q.extents(), sizeof(Tiles<D>), stream, g, terms);
        launch_tiles(recompute_keys<D>, g.k.extents(), sizeof(Tiles<D>), stream, g, terms);
    });
}

template <bool ORDERED>
void launch_one_pass(const Gradient<float>& g, cudaStream_t stream) {
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
        launch_tiles(one_pass<D, ORDERED>, g.k.extents(), sizeof(Tiles<D>), stream, g, terms,
                     Turns{turns.data(), turns.data() + 1});
    });
}

}  // namespace

template <>
std::span<const Version<float>> versions() {
    static const std::vector<Version<float>> list = {
        {"naive", "stores P and dS, a thread per element", launch_naive, work<float>},
        {"recompute", "P and dS tile by tile, dQ in one kernel, dK and dV in another", launch_recompute,
         work<float>, tiles_constraint},
        {"one_pass_atomic", "S and dP once; blocks add to dQ by atomics, in any order",
         launch_one_pass<false>, work<float>, tiles_constraint},
        {"one_pass_ordered", "blocks add to dQ in turns: the same bits every time", launch_one_pass<true>,
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
