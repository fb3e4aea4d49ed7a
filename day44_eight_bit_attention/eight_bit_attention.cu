// Day 44's host side: argument checks, memory for the transposed V, tensor maps, the list of
// versions. The kernels and their launches are in eight_bit_attention.cuh and beyond/.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "beyond/overlapped.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_map.hpp"
#include "eight_bit_attention.cuh"
#include "eight_bit_attention.hpp"

namespace day44 {
namespace {

using course::attention::Extents;

constexpr double kLog2E = 1.4426950408889634;

std::string why_not(const Shape& shape) {
    if (shape.dim % 16 != 0) return "dim is " + std::to_string(shape.dim) + "; TMA expects a multiple of 16";
    return course::why_no_hopper();
}

// Returns false if there is nothing to write.
bool check_arguments(const Attention& attention) {
    const Extents q = attention.q.extents();
    const Extents k = attention.k.extents();
    const auto require = [](bool holds, const auto&... message) {
        course::require(holds, "eight-bit attention: ", message...);
    };
    require(same(q, attention.out.extents()), "q and out differ in shape; expected the same");
    require(same(k, attention.v.extents()), "k and v differ in shape; expected the same");
    require(q.batch == k.batch && q.dim == k.dim, "q and k differ; expected the same batch and dim");
    require(k.heads == 0 ? q.heads == 0 : q.heads % k.heads == 0, "q has ", q.heads, " heads and k ", k.heads,
            "; expected a multiple of k's");
    require(q.dim <= D, "dim is ", q.dim, "; expected at most ", D);
    constexpr std::size_t kMostHeads = 65535;  // blocks along y: a head of V each, transposed
    require(k.batch * k.heads <= kMostHeads, "k has ", k.batch * k.heads,
            " heads in all batches; expected at most ", kMostHeads);
    require(attention.q_scale.size() == q.batch * q.heads, "q_scale has ", attention.q_scale.size(),
            " elements; expected one for each head, ", q.batch * q.heads);
    for (const auto& scales : {attention.k_scale, attention.v_scale})
        require(scales.size() == k.batch * k.heads, "k_scale or v_scale has ", scales.size(),
                " elements; expected one for each head, ", k.batch * k.heads);
    require(std::isfinite(attention.scale), "scale is ", attention.scale, "; expected a finite number");
    if (q.batch * q.heads * q.length * q.dim == 0) return false;
    const std::string reason = why_not({.dim = q.dim});
    require(reason.empty(), reason);
    require(
        rows_are_aligned(attention.q) && rows_are_aligned(attention.k) && rows_are_aligned(attention.v) &&
            rows_are_aligned(attention.out),
        "a row begins between multiples of 16 bytes; TMA expects addresses and strides that are multiples "
        "of 16 bytes");
    return true;
}

// V^T and the counter of tiles, in the stream's memory pool.
struct Workspace {
    Workspace(const Attention& attention, cudaStream_t of) : stream(of) {
        const Extents k = attention.k.extents();
        padded = course::ceil_div<std::size_t>(k.length, kPlaces) * kPlaces;
        CUDA_CHECK(cudaMallocAsync(&next, sizeof(*next), stream));
        if (padded == 0) return;
        CUDA_CHECK(cudaMallocAsync(&v, k.batch * k.heads * k.dim * padded, stream));
        launch_transpose_values(attention.v, v, padded, stream);
        CUDA_CHECK_LAUNCH();
    }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    ~Workspace() {
        if (v != nullptr) static_cast<void>(cudaFreeAsync(v, stream));
        static_cast<void>(cudaFreeAsync(next, stream));
    }

    cudaStream_t stream;
    std::size_t padded = 0;  // keys of a row of V^T
    unsigned char* v = nullptr;
    int* next = nullptr;
};

Maps maps_of(const Attention& attention, const Workspace& workspace, unsigned keys) {
    const auto map = [](const HeadsView<const E4m3>& view, unsigned rows) {
        const Extents e = view.extents();
        return course::make_tensor_map(view.data(), e.length, e.dim, view.strides().row, {e.heads, e.batch},
                                       {view.strides().head, view.strides().batch}, rows);
    };
    Maps maps{};
    maps.q = map(attention.q, kRows);
    const Extents k = attention.k.extents();
    if (k.length == 0) return maps;  // nothing is loaded
    maps.k = map(attention.k, keys);
    const std::size_t head = k.dim * workspace.padded;
    maps.v = course::make_tensor_map(reinterpret_cast<const E4m3*>(workspace.v), k.dim, workspace.padded,
                                     workspace.padded, {k.heads, k.batch}, {head, k.heads * head}, D);
    return maps;
}

// As in day 43: with a mask, several heads are computed together.
int heads_at_once(const Attention& attention) {
    constexpr std::size_t kShareOfL2 = std::size_t{16} << 20;  // bytes
    const Extents q = attention.q.extents();
    const Extents k = attention.k.extents();
    if (!attention.causal) return 1;
    const std::size_t bytes = 2 * k.length * k.dim * k.heads / q.heads;
    return static_cast<int>(
        std::clamp<std::size_t>(kShareOfL2 / std::max<std::size_t>(bytes, 1), 1, q.batch * q.heads));
}

Problem problem_of(const Attention& attention, int rows) {
    const int length_k = attention.k.length();
    return {.rows = {.out = attention.out,
                     .length_k = length_k,
                     .heads_kv = static_cast<int>(attention.k.extents().heads),
                     .diagonal = attention.causal ? length_k - attention.q.length() + 1 : length_k,
                     .scale = 1,
                     .tiles = course::ceil_div(attention.q.length(), rows),
                     .heads_at_once = heads_at_once(attention)},
            .scale = attention.scale * kLog2E,
            .q_scale = attention.q_scale.data(),
            .k_scale = attention.k_scale.data(),
            .v_scale = attention.v_scale.data()};
}

unsigned tiles_of(const Attention& attention, std::size_t rows) {
    const Extents q = attention.q.extents();
    return course::blocks_for(q.batch * q.heads * course::ceil_div(q.length, rows), 1);
}

void run_in_turn(const Attention& attention, cudaStream_t stream) {
    if (!check_arguments(attention)) return;
    const Workspace workspace(attention, stream);
    launch_in_turn(maps_of(attention, workspace, kPlaces), problem_of(attention, kRows),
                   tiles_of(attention, kRows), stream);
    CUDA_CHECK_LAUNCH();
}

void run_overlapped(const Attention& attention, cudaStream_t stream) {
    if (!check_arguments(attention)) return;
    const Workspace workspace(attention, stream);
    launch_overlapped(maps_of(attention, workspace, kKeys), problem_of(attention, kBlockRows),
                      tiles_of(attention, kBlockRows), workspace.next, stream);
    CUDA_CHECK_LAUNCH();
}

// Every tensor is moved once, V once more by its transposition.
course::Work work(const Shape& shape) {
    course::Work result = course::attention::work<Result>(shape);
    const auto elements = [](const course::attention::Extents& e) {
        return static_cast<double>(e.batch * e.heads * e.length) * static_cast<double>(e.dim);
    };
    result.bytes = elements(shape.q()) * (1 + sizeof(Result)) + 2 * elements(shape.kv());
    return result;
}

}  // namespace

std::span<const Version> versions() {
    static const std::vector<Version> list = {
        {.name = "in_turn",
         .idea = "8-bit wgmma; loads, products and softmax take turns",
         .launcher = run_in_turn,
         .work = work,
         .constraint = why_not},
        {.name = "overlapped",
         .idea = "a producer and three consumers, persistent blocks",
         .launcher = run_overlapped,
         .work = work,
         .constraint = why_not},
    };
    return list;
}

// How reference_row derives a bound, for a row with weights p and values v:
//   weights   E4M3 has three bits of mantissa: rounding loses up to 2^-4 of p, or half of the smallest
//             number, 2^-10, where the largest p is at least 2^4: sum of p |v| 2^-4 + sum of |v| 2^-14.
//   sums      wgmma adds 32 products and the sum so far. It cuts off each of them 13 bits behind the
//             point of the largest: an error of up to 2^-13 of the sum's magnitude for each term, and
//             once more for each 32 of them.
//   scores    are such sums too, of dim terms. An error e of a score is one of e p, and of the sum of
//             weights. It grows with scale |q| |k|: a bound without it is too small where scores are
//             large. For 259 x 128, normal data and scale 1, sums cut at 13 bits (simulated in double)
//             are off by up to four times the bound of weights and result alone, and by at most a
//             quarter of the bound of all.
//   result is rounded to BF16. Scales multiply all of this; they are rounded like a float.
course::attention::Precision precision() {
    return {.sum = 0x1p-13,
            .between_cuts = 32,
            .product = 0,
            .weight = 0x1p-4,
            .smallest_weight = 0x1p-14,
            .result = 0x1p-8,
            .smallest_result = 0x1p-134};
}

}  // namespace day44
