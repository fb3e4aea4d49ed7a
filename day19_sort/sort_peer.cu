#include "sort_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_radix_sort.cuh>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day19 {

course::Contestant cub_sort([[maybe_unused]] course::DeviceSpan<const Key> in,
                            [[maybe_unused]] course::DeviceSpan<Key> out, const course::Work& work) {
    course::Contestant cub{.name = "cub", .role = course::Role::kPeer, .work = work};
#ifdef COURSE_HAS_CUDA_LIBRARIES
    // The type of the length decides the type of its offsets: 32 bits where they are enough.
    const auto sort = [=](void* storage, std::size_t& bytes, cudaStream_t stream) {
        if (in.size() <= INT32_MAX) {
            CUDA_CHECK(cub::DeviceRadixSort::SortKeys(storage, bytes, in.data(), out.data(),
                                                      static_cast<int>(in.size()), 0, 32, stream));
        } else {
            CUDA_CHECK(cub::DeviceRadixSort::SortKeys(storage, bytes, in.data(), out.data(),
                                                      static_cast<std::int64_t>(in.size()), 0, 32, stream));
        }
    };
    std::size_t bytes = 0;
    sort(nullptr, bytes, nullptr);
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [sort, storage](cudaStream_t stream) {
        std::size_t size = storage->size();
        sort(storage->data(), size, stream);
    };
#else
    cub.cannot_run = "CUB is in builds for a GPU";
#endif
    return cub;
}

}  // namespace day19
