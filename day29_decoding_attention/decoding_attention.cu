// Day 29's host code: checks of arguments, the workspace, and the list of versions. The kernels and
// their launches are in decoding_attention.cuh and beyond/.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "beyond/async_ring.cuh"
#include "beyond/equal_shares.cuh"
#include "beyond/few_keys.cuh"
#include "beyond/packed_group.cuh"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "decoding_attention.cuh"
#include "decoding_attention.hpp"

namespace day29 {
namespace {

using course::require;

constexpr float kLog2E = 1.44269504f;

std::size_t heads_of_cache(const Shape& shape) {
    return shape.batch * shape.heads_kv;
}
std::size_t all_rows(const Shape& shape) {
    return heads_of_cache(shape) * shape.rows();
}

void check_shape(const Shape& shape) {
    require(shape.dim == 64 || shape.dim == 128, "decoding: dim is ", shape.dim, "; expected 64 or 128");
    require(shape.heads_kv > 0 && shape.heads % shape.heads_kv == 0, "decoding: heads is ", shape.heads,
            " and heads_kv ", shape.heads_kv, "; expected a multiple");
    require(shape.rows() <= kMostRows, "decoding: ", shape.rows(), " queries share a head of K (",
            shape.heads / shape.heads_kv, " heads x ", shape.queries, " queries); expected at most ",
            kMostRows);
    const std::size_t tiles = heads_of_cache(shape) * (shape.capacity / kKeys + 1 + kHeadCost);
    require(tiles < std::size_t{1} << 31 && all_rows(shape) < std::size_t{1} << 31 &&
                shape.capacity < std::size_t{1} << 30,
            "decoding: ", name(shape), " is too large; expected fewer than 2^30 tokens and 2^31 tiles of ",
            kKeys, " tokens");
}

template <class T>
Task<T> task_of(const Decoding<T>& decoding) {
    const Shape& shape = decoding.shape;
    return {decoding.q.data(),
            decoding.k.data(),
            decoding.v.data(),
            decoding.lengths.data(),
            decoding.out.data(),
            static_cast<int>(shape.batch),
            static_cast<int>(shape.heads_kv),
            static_cast<int>(shape.rows()),
            static_cast<int>(shape.queries),
            static_cast<int>(shape.capacity),
            decoding.scale * kLog2E};
}

// Checks the arguments, then calls launch(dim, task) with dim as a compile-time constant.
template <class T, class Launch>
void checked(const Decoding<T>& decoding, const Workspace& workspace, Launch launch) {
    if (!check_arguments(decoding, workspace)) return;
    if (decoding.shape.dim == 64) {
        launch(std::integral_constant<int, 64>(), task_of(decoding));
    } else {
        launch(std::integral_constant<int, 128>(), task_of(decoding));
    }
    CUDA_CHECK_LAUNCH();
}

template <class T>
void run_row_per_block(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream) {
    checked(decoding, workspace,
            [&](auto dim, const Task<T>& task) { launch_row_per_block<T, dim()>(task, stream); });
}

int splits_of_rows(const Shape& shape, unsigned blocks) {
    return splits_for(all_rows(shape), shape.capacity, blocks * kRowBlocks);
}
// Of the versions whose blocks take a head of K.
int splits_of_heads(const Shape& shape, unsigned blocks) {
    static_assert(kLeastKeys == kKeys * kWarps, "a block of packed_group takes so many keys at a time");
    return splits_for(heads_of_cache(shape), shape.capacity, blocks);
}

template <class T>
void run_split_keys(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream) {
    const int splits = splits_of_rows(decoding.shape, workspace.blocks());
    checked(decoding, workspace, [&](auto dim, const Task<T>& task) {
        launch_split_keys<T, dim()>(task, splits, workspace.parts(), stream);
    });
}

template <class T>
void run_packed_group(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream) {
    const int splits = splits_of_heads(decoding.shape, workspace.blocks());
    checked(decoding, workspace, [&](auto dim, const Task<T>& task) {
        launch_packed_group<T, dim()>(task, splits, workspace.parts(), stream);
    });
}

template <class T>
void run_async_ring(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream) {
    const int splits = splits_of_heads(decoding.shape, workspace.blocks());
    checked(decoding, workspace, [&](auto dim, const Task<T>& task) {
        launch_async_ring<T, dim()>(task, splits, workspace.parts(), stream);
    });
}

template <class T>
void run_equal_shares(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream) {
    checked(decoding, workspace, [&](auto dim, const Task<T>& task) {
        launch_equal_shares<T, dim()>(task, workspace.blocks(), workspace.parts(), stream);
    });
}

// The longest caches that a single kernel takes, by one warp for each head and by four.
constexpr std::size_t kKeysOfWarp = 64;
constexpr std::size_t kKeysOfBlock = 512;

template <class T>
void run_any_length(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream) {
    const std::size_t capacity = decoding.shape.capacity;
    if (capacity > kKeysOfBlock) return run_equal_shares(decoding, workspace, stream);
    checked(decoding, workspace, [&](auto dim, const Task<T>& task) {
        capacity <= kKeysOfWarp ? launch_few_keys<T, dim(), 1>(task, stream)
                                : launch_few_keys<T, dim(), 4>(task, stream);
    });
}

template <class T>
std::string ring_constraint(const Load&) {
    return course::why_no_tensor_cores(async_ring<T, 128>, kWarps * sizeof(Ring<T, 128>));
}
template <class T>
std::string group_constraint(const Load&) {
    return course::why_no_tensor_cores(packed_group<T, 128>, kWarps * sizeof(Tile<T, 128>));
}

// K and V of the tokens once, Q and the result.
course::Work work_of(const Load& load) {
    const Shape& shape = load.shape;
    const auto kv = 2.0 * static_cast<double>(load.tokens * shape.heads_kv * shape.dim);
    const auto q = static_cast<double>(shape.q_elements());
    return {.bytes = 2 * (kv + 2 * q),
            .written = 2 * q,
            .flops = 2 * kv * static_cast<double>(shape.rows()),
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace

std::string name(const Shape& shape) {
    std::string text = std::to_string(shape.batch) + "x" + std::to_string(shape.heads);
    if (shape.heads != shape.heads_kv) text += ":" + std::to_string(shape.heads_kv);
    text += "x" + std::to_string(shape.capacity) + "x" + std::to_string(shape.dim);
    if (shape.queries != 1) text += " " + std::to_string(shape.queries) + " queries";
    return text;
}

Workspace::Workspace(const Shape& shape, unsigned blocks)
    : shape_(shape), blocks_(blocks == 0 ? course::multiprocessors() : blocks) {
    check_shape(shape);
    const std::size_t rows = all_rows(shape);
    const auto row_splits = static_cast<std::size_t>(splits_of_rows(shape, blocks_));
    const auto head_splits = static_cast<std::size_t>(splits_of_heads(shape, blocks_));
    part_rows_ = std::max({rows * row_splits, rows * head_splits, kSlots * kMostRows * blocks_});
    parts_ = course::DeviceBuffer<float>(part_rows_ * (shape.dim + 4));
}

template <class T>
bool check_arguments(const Decoding<T>& decoding, const Workspace& workspace) {
    const Shape& shape = decoding.shape;
    check_shape(shape);
    const auto same_size = [](const char* what, std::size_t size, std::size_t expected) {
        require(size == expected, "decoding: ", what, " has ", size, " elements; expected ", expected);
    };
    same_size("q", decoding.q.size(), shape.q_elements());
    same_size("k", decoding.k.size(), shape.cache_elements());
    same_size("v", decoding.v.size(), shape.cache_elements());
    same_size("lengths", decoding.lengths.size(), shape.batch);
    same_size("out", decoding.out.size(), shape.q_elements());
    for (const auto& [what, address] : {std::pair<const char*, const void*>("q", decoding.q.data()),
                                        {"k", decoding.k.data()},
                                        {"v", decoding.v.data()}})
        require(course::is_aligned(address, 16), "decoding: ", what,
                " begins at an address that is not a multiple of ", "16 bytes; expected an aligned one");
    require(std::isfinite(decoding.scale) && decoding.scale > 0, "decoding: scale is ", decoding.scale,
            "; expected a finite number above 0");
    require(!overlap(decoding.out, decoding.q) && !overlap(decoding.out, decoding.k) &&
                !overlap(decoding.out, decoding.v) && !overlap(decoding.out, decoding.lengths),
            "decoding: out overlaps an input; expected memory of its own");
    const Shape& room = workspace.shape();
    require(room.batch == shape.batch && room.heads == shape.heads && room.heads_kv == shape.heads_kv &&
                room.queries == shape.queries && room.capacity == shape.capacity && room.dim == shape.dim,
            "decoding: the workspace is for ", name(room), ", the problem is ", name(shape),
            "; expected the same");
    return shape.q_elements() > 0;
}

template <class T>
std::span<const Version<T>> versions() {
    static const std::vector<Version<T>> list = {
        {.name = "row_per_block",
         .idea = "a block for each query of a head",
         .launcher = run_row_per_block<T>,
         .work = work_of},
        {.name = "split_keys",
         .idea = "several blocks for each query; a second kernel combines their parts",
         .launcher = run_split_keys<T>,
         .work = work_of},
        {.name = "packed_group",
         .idea = "heads that share K and V are the rows of one product on tensor cores",
         .launcher = run_packed_group<T>,
         .work = work_of,
         .constraint = group_constraint<T>},
        {.name = "async_ring",
         .idea = "each warp copies its own tiles with cp.async",
         .launcher = run_async_ring<T>,
         .work = work_of,
         .constraint = ring_constraint<T>},
        {.name = "equal_shares",
         .idea = "one list of all tiles, cut into equal shares for all SMs",
         .launcher = run_equal_shares<T>,
         .work = work_of,
         .constraint = ring_constraint<T>},
        {.name = "any_length",
         .idea = "a single kernel for few keys, else equal_shares",
         .launcher = run_any_length<T>,
         .work = work_of,
         .constraint = ring_constraint<T>},
    };
    return list;
}

template <class T>
void attend(const Decoding<T>& decoding, Workspace& workspace, cudaStream_t stream) {
    const std::span<const Version<T>> all = versions<T>();
    for (std::size_t i = all.size(); i-- > 0;) {
        if (!all[i].cannot_run({decoding.shape, 0}).empty()) continue;
        all[i].launcher(decoding, workspace, stream);
        return;
    }
}

#define DAY29_INSTANTIATE(T)                                             \
    template bool check_arguments(const Decoding<T>&, const Workspace&); \
    template std::span<const Version<T>> versions();                     \
    template void attend(const Decoding<T>&, Workspace&, cudaStream_t);
DAY29_INSTANTIATE(__half)
DAY29_INSTANTIATE(__nv_bfloat16)
#undef DAY29_INSTANTIATE

}  // namespace day29
