// Host code of the paged cache: checks, choices by shape, and the list of versions. The kernels and
// their launches are in paged.cuh.
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "paged.cuh"
#include "paged.hpp"

namespace day29 {
namespace {

using course::require;
using T = PagedDecoding::T;

constexpr float kLog2E = 1.44269504f;

void check_shape(const PagedShape& shape) {
    require(shape.dim == 64 || shape.dim == 128, "paged: dim is ", shape.dim, "; expected 64 or 128");
    require(shape.heads_kv > 0 && shape.heads % shape.heads_kv == 0, "paged: heads is ", shape.heads,
            " and heads_kv ", shape.heads_kv, "; expected a multiple");
    require(shape.group() <= kMostPagedHeads, "paged: ", shape.group(),
            " heads share a head of K; expected at most ", kMostPagedHeads);
    constexpr std::size_t kMost = std::size_t{1} << 26;
    require(
        shape.pages < kMost && shape.table_pages < kMost && shape.batch * shape.heads < std::size_t{1} << 31,
        "paged: ", name(shape), " is too large; expected fewer than 2^26 pages and 2^31 rows");
}

int splits_of(const PagedShape& shape, unsigned blocks) {
    return splits_for(shape.batch * shape.heads_kv, shape.capacity(), blocks);
}

bool check(const PagedDecoding& decoding, const PagedWorkspace& workspace) {
    const PagedShape& shape = decoding.shape;
    check_shape(shape);
    const auto same_size = [](const char* what, std::size_t size, std::size_t expected) {
        require(size == expected, "paged: ", what, " has ", size, " elements; expected ", expected);
    };
    same_size("q", decoding.q.size(), shape.q_elements());
    same_size("k", decoding.k.size(), shape.pool_elements());
    same_size("v", decoding.v.size(), shape.pool_elements());
    same_size("table", decoding.table.size(), shape.batch * shape.table_pages);
    same_size("lengths", decoding.lengths.size(), shape.batch);
    same_size("out", decoding.out.size(), shape.q_elements());
    for (const auto& [what, address] : {std::pair<const char*, const void*>("q", decoding.q.data()),
                                        {"k", decoding.k.data()},
                                        {"v", decoding.v.data()}})
        require(course::is_aligned(address, 16), "paged: ", what,
                " begins at an address that is not a multiple of 16 bytes; expected an aligned one");
    require(std::isfinite(decoding.scale) && decoding.scale > 0, "paged: scale is ", decoding.scale,
            "; expected a finite number above 0");
    require(!overlap(decoding.out, decoding.q) && !overlap(decoding.out, decoding.k) &&
                !overlap(decoding.out, decoding.v) && !overlap(decoding.out, decoding.table) &&
                !overlap(decoding.out, decoding.lengths),
            "paged: out overlaps an input; expected memory of its own");
    require(name(workspace.shape()) == name(shape), "paged: the workspace is for ", name(workspace.shape()),
            ", the problem is ", name(shape), "; expected the same");
    return shape.q_elements() > 0;
}

// Checks the arguments, then calls launch(dim, task) with dim as a compile-time constant.
template <class Launch>
void checked(const PagedDecoding& decoding, const PagedWorkspace& workspace, Launch launch) {
    if (!check(decoding, workspace)) return;
    const PagedShape& shape = decoding.shape;
    const PagedTask<T> task{decoding.q.data(),
                            decoding.k.data(),
                            decoding.v.data(),
                            decoding.table.data(),
                            decoding.lengths.data(),
                            decoding.out.data(),
                            static_cast<int>(shape.batch),
                            static_cast<int>(shape.heads_kv),
                            static_cast<int>(shape.group()),
                            static_cast<int>(shape.table_pages),
                            decoding.scale * kLog2E};
    if (shape.dim == 64) {
        launch(std::integral_constant<int, 64>(), task);
    } else {
        launch(std::integral_constant<int, 128>(), task);
    }
    CUDA_CHECK_LAUNCH();
}

// And with the sets of 16 heads that share a head of K: 1, 2 or 4.
template <class Launch>
void in_sets(const PagedDecoding& decoding, const PagedWorkspace& workspace, Launch launch) {
    checked(decoding, workspace, [&](auto dim, const PagedTask<T>& task) {
        if (task.rows <= 16) {
            launch(dim, std::integral_constant<int, 1>(), task);
        } else if (task.rows <= 32) {
            launch(dim, std::integral_constant<int, 2>(), task);
        } else {
            launch(dim, std::integral_constant<int, 4>(), task);
        }
    });
}

void run_page_rows(const PagedDecoding& decoding, PagedWorkspace& workspace, cudaStream_t stream) {
    checked(decoding, workspace,
            [&](auto dim, const PagedTask<T>& task) { launch_page_rows<T, dim()>(task, stream); });
}

void run_page_group(const PagedDecoding& decoding, PagedWorkspace& workspace, cudaStream_t stream) {
    const int splits = splits_of(decoding.shape, workspace.blocks());
    in_sets(decoding, workspace, [&](auto dim, auto sets, const PagedTask<T>& task) {
        launch_page_group<T, dim(), sets()>(task, splits, workspace.parts(), stream);
    });
}

void run_page_ring(const PagedDecoding& decoding, PagedWorkspace& workspace, cudaStream_t stream) {
    const int splits = splits_of(decoding.shape, workspace.blocks());
    in_sets(decoding, workspace, [&](auto dim, auto sets, const PagedTask<T>& task) {
        launch_page_ring<T, dim(), sets()>(task, splits, workspace.parts(), stream);
    });
}

std::string group_constraint(const PagedLoad&) {
    return course::why_no_tensor_cores(page_group<T, 128, 1>, kWarps * sizeof(Tile<T, 128>));
}
std::string ring_constraint(const PagedLoad&) {
    return course::why_no_tensor_cores(page_ring<T, 128, 1>, kStages * kWarps * sizeof(Tile<T, 128>));
}

// K and V of the tokens once, their entries of the table, Q and the result.
course::Work work_of(const PagedLoad& load) {
    const PagedShape& shape = load.shape;
    const auto kv = 2.0 * static_cast<double>(load.tokens * shape.heads_kv * shape.dim);
    const auto q = static_cast<double>(shape.q_elements());
    return {.bytes = sizeof(T) * (kv + 2 * q) + sizeof(int) * static_cast<double>(load.tokens / kPage),
            .written = sizeof(T) * q,
            .flops = 2 * kv * static_cast<double>(shape.group()),
            .arithmetic = course::Arithmetic::kOther};
}

}  // namespace

std::string name(const PagedShape& shape) {
    return name(Shape{.batch = shape.batch,
                      .heads = shape.heads,
                      .heads_kv = shape.heads_kv,
                      .capacity = shape.capacity(),
                      .dim = shape.dim}) +
           " in " + std::to_string(shape.pages) + " pages";
}

PagedWorkspace::PagedWorkspace(const PagedShape& shape, unsigned blocks)
    : shape_(shape), blocks_(blocks == 0 ? course::multiprocessors() : blocks) {
    check_shape(shape);
    const auto splits = static_cast<std::size_t>(splits_of(shape, blocks_));
    parts_ = course::DeviceBuffer<float>(shape.batch * shape.heads * splits * (shape.dim + 4));
}

std::span<const PagedVersion> paged_versions() {
    static const std::array<PagedVersion, 3> list{{
        {.name = "page_rows",
         .idea = "a block for each query of a head; each key's page is looked up",
         .launcher = run_page_rows,
         .work = work_of},
        {.name = "page_group",
         .idea = "a page is loaded once for the heads that share it; several blocks for a sequence",
         .launcher = run_page_group,
         .work = work_of,
         .constraint = group_constraint},
        {.name = "page_ring",
         .idea = "the next pages are copied with cp.async; a lane for each entry of the table",
         .launcher = run_page_ring,
         .work = work_of,
         .constraint = ring_constraint},
    }};
    return list;
}

Precision paged_precision(const PagedVersion& version) {
    if (version.name == "page_rows") return {};
    // As of the other versions on tensor cores.
    return precision(versions<T>().back());
}

}  // namespace day29
