// The host code of bulk_merge, which is compiled for compute capability 9.0a. The kernels and their
// launches are in bulk_merge.cuh and split_tiles.cuh.
#include "beyond/bulk_merge.cuh"
#include "beyond/bulk_merge.hpp"
#include "beyond/split_tiles.cuh"
#include "common/check/check.hpp"

namespace day18 {

void find_splits(course::DeviceSpan<const Key> a, course::DeviceSpan<const Key> b, std::size_t tile_size,
                 std::size_t* splits, Workspace& workspace, cudaStream_t stream) {
    launch_split_tiles(a.data(), a.size(), b.data(), b.size(), tile_size, splits, workspace.ticket(), stream);
    CUDA_CHECK_LAUNCH();
}

template <bool kPairs>
void enqueue_bulk_merge(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                        cudaStream_t stream) {
    launch_bulk_merge<kPairs>(a.keys.data(), a.values.data(), a.keys.size(), b.keys.data(), b.values.data(),
                              b.keys.size(), workspace.splits(), workspace.ticket(), out.keys.data(),
                              out.values.data(), stream);
    CUDA_CHECK_LAUNCH();
}

template void enqueue_bulk_merge<false>(const Sorted&, const Sorted&, const Output&, Workspace&,
                                        cudaStream_t);
template void enqueue_bulk_merge<true>(const Sorted&, const Sorted&, const Output&, Workspace&, cudaStream_t);

}  // namespace day18
