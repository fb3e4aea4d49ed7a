// Host code of latent attention: checks and the list of versions. The kernels and their launches
// are in latent.cuh.
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "latent.cuh"
#include "latent.hpp"

namespace day29 {
namespace {

using course::require;
using T = LatentDecoding::T;

constexpr float kLog2E = 1.44269504f;
constexpr int kWide = 4;  // times 16 heads of a block of latent_wide

void check_shape(const LatentShape& shape) {
    require(shape.rank == 128 || shape.rank == 512, "latent: rank is ", shape.rank, "; expected 128 or 512");
    require(shape.capacity < std::size_t{1} << 30 && shape.batch * shape.heads < std::size_t{1} << 31,
            "latent: ", name(shape), " is too large; expected fewer than 2^30 tokens and 2^31 rows");
}

// `heads`: of a block.
int splits_of(const LatentShape& shape, unsigned blocks, std::size_t heads) {
    return splits_for(shape.batch * course::ceil_div(shape.heads, heads), shape.capacity, blocks);
}

bool check(const LatentDecoding& decoding, const LatentWorkspace& workspace) {
    const LatentShape& shape = decoding.shape;
    check_shape(shape);
    const auto same_size = [](const char* what, std::size_t size, std::size_t expected) {
        require(size == expected, "latent: ", what, " has ", size, " elements; expected ", expected);
    };
    same_size("q", decoding.q.size(), shape.q_elements());
    same_size("cache", decoding.cache.size(), shape.cache_elements());
    same_size("lengths", decoding.lengths.size(), shape.batch);
    same_size("out", decoding.out.size(), shape.out_elements());
    for (const auto& [what, address] :
         {std::pair<const char*, const void*>("q", decoding.q.data()), {"cache", decoding.cache.data()}})
        require(course::is_aligned(address, 16), "latent: ", what,
                " begins at an address that is not a multiple of 16 bytes; expected an aligned one");
    require(std::isfinite(decoding.scale) && decoding.scale > 0, "latent: scale is ", decoding.scale,
            "; expected a finite number above 0");
    require(!overlap(decoding.out, decoding.q) && !overlap(decoding.out, decoding.cache) &&
                !overlap(decoding.out, decoding.lengths),
            "latent: out overlaps an input; expected memory of its own");
    require(name(workspace.shape()) == name(shape), "latent: the workspace is for ", name(workspace.shape()),
            ", the problem is ", name(shape), "; expected the same");
    return shape.out_elements() > 0;
}

// Checks the arguments, then calls launch(rank, task) with rank as a compile-time constant.
template <class Launch>
void checked(const LatentDecoding& decoding, const LatentWorkspace& workspace, Launch launch) {
    if (!check(decoding, workspace)) return;
    const LatentShape& shape = decoding.shape;
    const LatentTask task{decoding.q.data(),
                          decoding.cache.data(),
                          decoding.lengths.data(),
                          decoding.out.data(),
                          static_cast<int>(shape.batch),
                          static_cast<int>(shape.heads),
                          static_cast<int>(shape.capacity),
                          decoding.scale * kLog2E};
    if (shape.rank == 128) {
        launch(std::integral_constant<int, 128>(), task);
    } else {
        launch(std::integral_constant<int, 512>(), task);
    }
    CUDA_CHECK_LAUNCH();
}

void run_rows(const LatentDecoding& decoding, LatentWorkspace& workspace, cudaStream_t stream) {
    checked(decoding, workspace,
            [&](auto rank, const LatentTask& task) { launch_latent_rows<rank()>(task, stream); });
}

template <int R, int STAGES>
void run_tile(const LatentDecoding& decoding, LatentWorkspace& workspace, cudaStream_t stream) {
    const int splits = splits_of(decoding.shape, workspace.blocks(), 16 * R);
    checked(decoding, workspace, [&](auto rank, const LatentTask& task) {
        launch_latent_tile<rank(), R, STAGES>(task, splits, workspace.parts(), stream);
    });
}

template <int R, int STAGES>
std::string constraint(const LatentLoad& load) {
    if (load.shape.rank == 128)
        return course::why_no_tensor_cores(latent_tile<128, R, STAGES>, sizeof(LatentBlock<128, R, STAGES>));
    return course::why_no_tensor_cores(latent_tile<512, R, STAGES>, sizeof(LatentBlock<512, R, STAGES>));
}

// The latents of the tokens once, Q and the result.
course::Work work_of(const LatentLoad& load) {
    const LatentShape& shape = load.shape;
    const auto tokens = static_cast<double>(load.tokens);
    const auto out = static_cast<double>(shape.out_elements());
    return {.bytes = sizeof(T) * (tokens * static_cast<double>(shape.width()) +
                                  static_cast<double>(shape.q_elements()) + out),
            .written = sizeof(T) * out,
            .flops = 2 * tokens * static_cast<double>(shape.heads * (shape.width() + shape.rank)),
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace

std::string name(const LatentShape& shape) {
    return std::to_string(shape.batch) + "x" + std::to_string(shape.heads) + ":1x" +
           std::to_string(shape.capacity) + "x" + std::to_string(shape.width());
}

LatentWorkspace::LatentWorkspace(const LatentShape& shape, unsigned blocks)
    : shape_(shape), blocks_(blocks == 0 ? course::multiprocessors() : blocks) {
    check_shape(shape);
    // The fewer blocks share a range of keys, the more ranges there are.
    const auto splits = static_cast<std::size_t>(splits_of(shape, blocks_, 16 * kWide));
    parts_ = course::DeviceBuffer<float>(shape.batch * shape.heads * splits * (shape.rank + 4));
}

std::span<const LatentVersion> latent_versions() {
    static const std::array<LatentVersion, 4> list{{
        {.name = "latent_rows",
         .idea = "a block for each head; each warp reads whole keys",
         .launcher = run_rows,
         .work = work_of},
        {.name = "latent_tile",
         .idea = "16 heads share a tile of keys, which is also that of the values",
         .launcher = run_tile<1, 1>,
         .work = work_of,
         .constraint = constraint<1, 1>},
        {.name = "latent_ring",
         .idea = "the next tile is in flight while this one is multiplied",
         .launcher = run_tile<1, 2>,
         .work = work_of,
         .constraint = constraint<1, 2>},
        {.name = "latent_wide",
         .idea = "64 heads share a tile",
         .launcher = run_tile<kWide, 2>,
         .work = work_of,
         .constraint = constraint<kWide, 2>},
    }};
    return list;
}

Precision latent_precision(const LatentVersion& version) {
    if (version.name == "latent_rows") return {};
    // As of the other versions on tensor cores.
    return precision(versions<T>().back());
}

}  // namespace day29
