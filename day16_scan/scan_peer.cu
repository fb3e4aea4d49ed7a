#include <cstdint>

#include "scan_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_scan.cuh>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day16 {

template <class T>
course::Contestant cub_scan(course::DeviceSpan<const T> in, course::DeviceSpan<T> out,
                            const course::Work& work) {
    course::Contestant cub{.name = "cub", .role = course::Role::kPeer, .work = work};
#ifdef COURSE_HAS_CUDA_LIBRARIES
    const auto scan = [in, out](void* storage, std::size_t& bytes, cudaStream_t stream) {
        // An int where it can count the elements: CUB then computes indices in 32 bits.
        if (in.size() <= INT32_MAX) {
            CUDA_CHECK(cub::DeviceScan::InclusiveSum(storage, bytes, in.data(), out.data(),
                                                     static_cast<int>(in.size()), stream));
        } else {
            CUDA_CHECK(cub::DeviceScan::InclusiveSum(storage, bytes, in.data(), out.data(),
                                                     static_cast<std::int64_t>(in.size()), stream));
        }
    };
    std::size_t bytes = 0;
    scan(nullptr, bytes, nullptr);
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [scan, storage](cudaStream_t stream) {
        std::size_t size = storage->size();
        scan(storage->data(), size, stream);
    };
#else
    static_cast<void>(in);
    static_cast<void>(out);
    cub.cannot_run = "CUB is in builds for a GPU";
#endif
    return cub;
}

template course::Contestant cub_scan<float>(course::DeviceSpan<const float>, course::DeviceSpan<float>,
                                            const course::Work&);
template course::Contestant cub_scan<std::int32_t>(course::DeviceSpan<const std::int32_t>,
                                                   course::DeviceSpan<std::int32_t>, const course::Work&);

}  // namespace day16
