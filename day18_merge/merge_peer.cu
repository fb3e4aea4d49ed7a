#include "merge_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/version.cuh>
#if CUB_VERSION >= 200700
#define DAY18_HAS_DEVICE_MERGE
#include <cub/device/device_merge.cuh>
#include <cuda/std/functional>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif
#endif

namespace day18 {

course::Contestant cub_merge([[maybe_unused]] Operation operation, [[maybe_unused]] const Sorted& a,
                             [[maybe_unused]] const Sorted& b, [[maybe_unused]] const Output& out,
                             const course::Work& work) {
    course::Contestant cub{.name = "cub", .role = course::Role::kPeer, .work = work};
#ifdef DAY18_HAS_DEVICE_MERGE
    // `m`, `n`: ints where they can count the elements. Older versions of CUB accept nothing else.
    const auto merge_mn = [=](void* storage, std::size_t& bytes, auto m, auto n, cudaStream_t stream) {
        if (operation == Operation::kKeys)
            return cub::DeviceMerge::MergeKeys(storage, bytes, a.keys.data(), m, b.keys.data(), n,
                                               out.keys.data(), cuda::std::less<>{}, stream);
        return cub::DeviceMerge::MergePairs(storage, bytes, a.keys.data(), a.values.data(), m, b.keys.data(),
                                            b.values.data(), n, out.keys.data(), out.values.data(),
                                            cuda::std::less<>{}, stream);
    };
    const auto merge = [=](void* storage, std::size_t& bytes, cudaStream_t stream) {
        if (a.keys.size() <= INT32_MAX && b.keys.size() <= INT32_MAX) {
            CUDA_CHECK(merge_mn(storage, bytes, static_cast<int>(a.keys.size()),
                                static_cast<int>(b.keys.size()), stream));
        } else {
            CUDA_CHECK(merge_mn(storage, bytes, static_cast<std::int64_t>(a.keys.size()),
                                static_cast<std::int64_t>(b.keys.size()), stream));
        }
    };
    std::size_t bytes = 0;
    merge(nullptr, bytes, nullptr);
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [merge, storage](cudaStream_t stream) {
        std::size_t size = storage->size();
        merge(storage->data(), size, stream);
    };
#elif defined(COURSE_HAS_CUDA_LIBRARIES)
    cub.cannot_run = "cub::DeviceMerge is in CUDA 12.8 and newer";
#else
    cub.cannot_run = "CUB is in builds for a GPU";
#endif
    return cub;
}

}  // namespace day18
