#include <cstdint>

#include "scan_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day16 {

#ifdef COURSE_HAS_CUDA_LIBRARIES
namespace {

// `scan` is called like CUB's functions: without storage it returns how many bytes it needs.
template <class Scan>
course::Contestant cub_contestant(const course::Work& work, Scan scan) {
    course::Contestant cub{.name = "cub", .role = course::Role::kPeer, .work = work};
    std::size_t bytes = 0;
    CUDA_CHECK(scan(nullptr, bytes, nullptr));
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [scan, storage](cudaStream_t stream) {
        std::size_t size = storage->size();
        CUDA_CHECK(scan(storage->data(), size, stream));
    };
    return cub;
}

// function(n) with an int where it can count the elements: CUB then computes indices in 32 bits.
template <class Function>
cudaError_t with_count(std::size_t n, Function function) {
    return n <= INT32_MAX ? function(static_cast<int>(n)) : function(static_cast<std::int64_t>(n));
}

}  // namespace

template <class T>
course::Contestant cub_scan(course::DeviceSpan<const T> in, course::DeviceSpan<T> out,
                            const course::Work& work) {
    return cub_contestant(work, [in, out](void* storage, std::size_t& bytes, cudaStream_t stream) {
        return with_count(in.size(), [&](auto n) {
            return cub::DeviceScan::InclusiveSum(storage, bytes, in.data(), out.data(), n, stream);
        });
    });
}

course::Contestant cub_scan_by_key(course::DeviceSpan<const std::int32_t> keys,
                                   course::DeviceSpan<const float> in, course::DeviceSpan<float> out,
                                   const course::Work& work) {
    return cub_contestant(work, [keys, in, out](void* storage, std::size_t& bytes, cudaStream_t stream) {
        return with_count(in.size(), [&](auto n) {
            return cub::DeviceScan::InclusiveSumByKey(storage, bytes, keys.data(), in.data(), out.data(), n,
                                                      cuda::std::equal_to<>{}, stream);
        });
    });
}
#else
namespace {

course::Contestant without_cub(const course::Work& work) {
    return {
        .name = "cub", .role = course::Role::kPeer, .work = work, .cannot_run = "CUB is in builds for a GPU"};
}

}  // namespace

template <class T>
course::Contestant cub_scan(course::DeviceSpan<const T>, course::DeviceSpan<T>, const course::Work& work) {
    return without_cub(work);
}

course::Contestant cub_scan_by_key(course::DeviceSpan<const std::int32_t>, course::DeviceSpan<const float>,
                                   course::DeviceSpan<float>, const course::Work& work) {
    return without_cub(work);
}
#endif

template course::Contestant cub_scan<float>(course::DeviceSpan<const float>, course::DeviceSpan<float>,
                                            const course::Work&);
template course::Contestant cub_scan<std::int32_t>(course::DeviceSpan<const std::int32_t>,
                                                   course::DeviceSpan<std::int32_t>, const course::Work&);
template course::Contestant cub_scan<std::int64_t>(course::DeviceSpan<const std::int64_t>,
                                                   course::DeviceSpan<std::int64_t>, const course::Work&);

}  // namespace day16
