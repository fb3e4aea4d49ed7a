#include <algorithm>

#include "bulk_lookback.hpp"
#include "bulk_operator.cuh"
#include "bulk_sources.cuh"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "scan.hpp"

namespace day16 {

namespace {

// As many blocks as run at once, if there are so many tiles.
template <class... Parameters>
void launch_resident(void (*kernel)(Parameters...), int threads, std::size_t shared, std::size_t tiles,
                     cudaStream_t stream, Parameters... values) {
    course::allow_shared_bytes(kernel, shared);
    const std::size_t resident = course::resident_blocks(kernel, threads, shared);
    const auto grid = static_cast<unsigned>(std::min({tiles, resident, static_cast<std::size_t>(threads)}));
    void* arguments[] = {&values...};
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), grid, threads, arguments,
                                           shared, stream));
}

Board board_of(Workspace& workspace) {
    return {workspace.ticket(), workspace.words(), workspace.words_capacity()};
}

template <class Source>
void launch_bulk_operator(Source source, std::size_t n, Workspace& workspace, cudaStream_t stream) {
    launch_resident(bulk_operator_scan<Source>, Source::kThreads, sizeof(OperatorStages<Source>),
                    course::ceil_div<std::size_t>(n, Source::kTile), stream, source, n, board_of(workspace));
}

}  // namespace

template <class T, bool kExclusive>
void launch_bulk_lookback(const T* in, T* out, std::size_t n, Workspace& workspace, cudaStream_t stream) {
    launch_resident(bulk_lookback<T, kExclusive>, kBulkThreads, sizeof(Stages<T>),
                    course::ceil_div<std::size_t>(n, kBulkTile), stream, in, out, n, board_of(workspace));
}

void launch_bulk_integers(const std::uint64_t* in, std::uint64_t* out, std::size_t n, Workspace& workspace,
                          cudaStream_t stream) {
    launch_bulk_operator(Integers{in, out}, n, workspace, stream);
}

void launch_bulk_by_key(const std::int32_t* keys, const float* values, float* out, std::size_t n,
                        Workspace& workspace, cudaStream_t stream) {
    launch_bulk_operator(ValuesByKey{keys, values, out}, n, workspace, stream);
}

#define DAY16_INSTANTIATE(T)                                                                           \
    template void launch_bulk_lookback<T, false>(const T*, T*, std::size_t, Workspace&, cudaStream_t); \
    template void launch_bulk_lookback<T, true>(const T*, T*, std::size_t, Workspace&, cudaStream_t);
DAY16_INSTANTIATE(float)
DAY16_INSTANTIATE(std::uint32_t)
#undef DAY16_INSTANTIATE

}  // namespace day16
