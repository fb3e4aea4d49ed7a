// Day 43's host side: argument checks, tensor maps, the choice by size, the list of versions. The
// kernels and their launches are in hopper_attention.cuh and beyond/.
#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/overlap.cuh"
#include "beyond/short.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "common/device/tensor_map.hpp"
#include "hopper_attention.cuh"
#include "hopper_attention.hpp"

namespace day43 {
namespace {

constexpr float kLog2E = 1.44269504f;

std::string constraint(const Shape& shape) {
    if (shape.dim % 8 != 0)
        return "needs a dim that is a multiple of 8; this one is " + std::to_string(shape.dim);
    return course::why_no_hopper();
}

// With a mask, the tiles of a head have unequal lengths, so blocks that run together belong to
// several heads: to as many as have K and V of 16 MB in the L2 cache. Without a mask, one head at a
// time.
template <class T>
int heads_at_once(const Attention<T>& attention) {
    constexpr std::size_t kShareOfL2 = std::size_t{16} << 20;  // bytes
    const Extents q = attention.q.extents();
    const Extents k = attention.k.extents();
    if (!attention.causal) return 1;
    const std::size_t bytes = 2 * k.length * k.dim * sizeof(T) * k.heads / q.heads;  // for each head of Q
    return static_cast<int>(
        std::clamp<std::size_t>(kShareOfL2 / std::max<std::size_t>(bytes, 1), 1, q.batch * q.heads));
}

template <class T>
CUtensorMap map_of(const HeadsView<const T>& view, unsigned box_rows) {
    const Extents e = view.extents();
    return course::make_tensor_map(view.data(), e.length, e.dim, view.strides().row, {e.heads, e.batch},
                                   {view.strides().head, view.strides().batch}, box_rows);
}

template <class T>
Maps maps_of(const Attention<T>& attention, unsigned keys) {
    Maps maps{};
    maps.q = map_of(attention.q, kRows);
    if (attention.k.length() == 0) return maps;  // nothing is loaded
    maps.k = map_of(attention.k, keys);
    maps.v = map_of(attention.v, keys);
    return maps;
}

template <class T>
Problem<T> problem_of(const Attention<T>& attention, int rows) {
    return {
        .out = attention.out,
        .length_k = attention.k.length(),
        .heads_kv = static_cast<int>(attention.k.extents().heads),
        .diagonal = attention.causal ? attention.k.length() - attention.q.length() + 1 : attention.k.length(),
        .scale = attention.scale * kLog2E,
        .tiles = course::ceil_div(attention.q.length(), rows),
        .heads_at_once = heads_at_once(attention)};
}

template <class T>
unsigned tiles_of(const Attention<T>& attention, std::size_t rows) {
    const Extents q = attention.q.extents();
    return course::blocks_for(q.batch * q.heads * course::ceil_div(q.length, rows), 1);
}

// The launches of the lesson, for an Attention.
struct WgmmaTma {
    template <class T, int D>
    static void start(const Attention<T>& attention, cudaStream_t stream) {
        launch_wgmma_tma<T, D>(maps_of(attention, kKeys), problem_of(attention, kRows),
                               tiles_of(attention, kRows), stream);
    }
};
struct Specialised {
    template <class T, int D>
    static void start(const Attention<T>& attention, cudaStream_t stream) {
        launch_specialised<T, D>(maps_of(attention, kKeys), problem_of(attention, kBlockRows<D>),
                                 tiles_of(attention, kBlockRows<D>), stream);
    }
};
struct PingPong {
    template <class T, int D>
    static void start(const Attention<T>& attention, cudaStream_t stream) {
        launch_ping_pong<T, D>(maps_of(attention, kKeys), problem_of(attention, kBlockRows<D>),
                               tiles_of(attention, kBlockRows<D>), stream);
    }
};
struct Overlapped {
    template <class T, int D>
    static void start(const Attention<T>& attention, cudaStream_t stream) {
        launch_overlapped<T, D>(maps_of(attention, kKeys), problem_of(attention, kBlockRows<D>),
                                tiles_of(attention, kBlockRows<D>), stream);
    }
};

// The counter of `persistent`, in the stream's memory pool.
struct NextTile {
    explicit NextTile(cudaStream_t of) : stream(of) {
        CUDA_CHECK(cudaMallocAsync(&number, sizeof(*number), stream));
    }
    NextTile(const NextTile&) = delete;
    NextTile& operator=(const NextTile&) = delete;
    ~NextTile() { static_cast<void>(cudaFreeAsync(number, stream)); }

    cudaStream_t stream;
    int* number = nullptr;
};

struct Persistent {
    template <class T, int D>
    static void start(const Attention<T>& attention, cudaStream_t stream) {
        const NextTile next(stream);
        launch_persistent<T, D>(maps_of(attention, kKeys), problem_of(attention, kBlockRows<D>),
                                tiles_of(attention, kBlockRows<D>), next.number, stream);
    }
};

// The part of all waves of `tiles` that has work, with so many blocks on an SM.
double share_of_work(unsigned tiles, unsigned blocks_of_sm) {
    const unsigned blocks = blocks_of_sm * static_cast<unsigned>(course::multiprocessors());
    return static_cast<double>(tiles) / (course::ceil_div(tiles, blocks) * static_cast<double>(blocks));
}

// Blocks of 64 rows, of GROUPS warpgroups.
template <int GROUPS>
struct Short {
    template <class T, int D, int BLOCKS>
    static void start_blocks(const Attention<T>& attention, cudaStream_t stream) {
        launch_many_blocks<T, D, GROUPS, BLOCKS>(maps_of(attention, kShortKeys<D, GROUPS>),
                                                 problem_of(attention, kRows), tiles_of(attention, kRows),
                                                 stream);
    }
    // With a mask, blocks have unequal lengths and end at different times in any case. Then three
    // blocks per SM, which do not spill, are faster.
    template <class T, int D>
    static void start(const Attention<T>& attention, cudaStream_t stream) {
        if constexpr (GROUPS > 1) {
            start_blocks<T, D, 1>(attention, stream);
        } else if constexpr (D == 64) {
            start_blocks<T, D, 3>(attention, stream);
        } else {
            const unsigned tiles = tiles_of(attention, kRows);
            if (attention.causal || share_of_work(tiles, 3) > share_of_work(tiles, 4)) {
                start_blocks<T, D, 3>(attention, stream);
            } else {
                start_blocks<T, D, 4>(attention, stream);
            }
        }
    }
};

// The rule is measured (README): short sequences, and among them those that leave SMs idle.
struct Dispatcher {
    template <class T, int D>
    static void start(const Attention<T>& attention, cudaStream_t stream) {
        constexpr int kShort = D == 64 ? 2048 : 1024;  // tokens
        const int keys = attention.k.length();
        if (keys > kShort) {
            Persistent::start<T, D>(attention, stream);
        } else if (keys > 2 * kShortKeys<D, 1> &&
                   tiles_of(attention, kRows) <= static_cast<unsigned>(course::multiprocessors())) {
            Short<2>::start<T, D>(attention, stream);
        } else {
            Short<1>::start<T, D>(attention, stream);
        }
    }
};

template <class K, class T>
void launch(const Attention<T>& attention, cudaStream_t stream) {
    if (!check_arguments(attention)) return;
    const std::string reason = why_not(attention);
    course::require(reason.empty(), "fused attention: ", reason);
    if (attention.q.dim() <= 64) {
        K::template start<T, 64>(attention, stream);
    } else {
        K::template start<T, 128>(attention, stream);
    }
    CUDA_CHECK_LAUNCH();
}

template <class K, class T>
Version<T> version(const char* name, const char* idea) {
    return {.name = name,
            .idea = idea,
            .launcher = launch<K, T>,
            .work = course::attention::work<T>,
            .constraint = constraint};
}

}  // namespace

template <class T>
std::string why_not(const Attention<T>& attention) {
    const Extents q = attention.q.extents();
    if (q.dim % 8 != 0) return "dim is " + std::to_string(q.dim) + "; TMA expects a multiple of 8";
    if (!rows_are_aligned(attention))
        return "a row begins between multiples of 16 bytes; TMA expects addresses and strides that are "
               "multiples of 16 bytes";
    return course::why_no_hopper();
}
template std::string why_not(const Attention<__half>&);
template std::string why_not(const Attention<__nv_bfloat16>&);

template <class T>
std::span<const Version<T>> versions() {
    static const std::vector<Version<T>> list = {
        version<WgmmaTma, T>("wgmma_tma", "Q, K and V by TMA, products by wgmma, weights in registers"),
        version<Specialised, T>("specialised", "a producer warpgroup loads, two or three consumers multiply"),
        version<PingPong, T>("ping_pong",
                             "consumers take turns: one's softmax runs under the others' products"),
        version<Overlapped, T>("overlapped", "the next scores are issued before this tile's second product"),
        version<Persistent, T>("persistent", "a block per SM computes tile after tile, long ones first"),
        version<Short<1>, T>("many_blocks", "blocks of 64 rows, three or four on an SM"),
        version<Short<2>, T>("split_keys", "two warpgroups share the keys of 64 rows"),
        version<Dispatcher, T>("dispatcher", "a measured rule chooses among the last three"),
    };
    return list;
}
template std::span<const Version<__half>> versions();
template std::span<const Version<__nv_bfloat16>> versions();

}  // namespace day43
