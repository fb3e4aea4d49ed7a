#include "single_pass_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day24 {

#ifdef COURSE_HAS_CUDA_LIBRARIES
namespace {

struct IsBelow {
    std::int32_t threshold;
    __host__ __device__ bool operator()(std::int32_t value) const { return value < threshold; }
};

// `call` is called like CUB's functions: without storage it returns how many bytes it needs.
template <class Call>
course::Contestant cub_contestant(const course::Work& work, Call call) {
    course::Contestant cub{.name = "cub", .role = course::Role::kPeer, .work = work};
    std::size_t bytes = 0;
    CUDA_CHECK(call(nullptr, bytes, nullptr));
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [call, storage](cudaStream_t stream) {
        std::size_t size = storage->size();
        CUDA_CHECK(call(storage->data(), size, stream));
    };
    return cub;
}

// function(n) with an int where it can count the elements: CUB then computes indices in 32 bits.
template <class Function>
cudaError_t with_count(std::size_t n, Function function) {
    return n <= INT32_MAX ? function(static_cast<int>(n)) : function(static_cast<std::int64_t>(n));
}

}  // namespace

course::Contestant cub_scan(course::DeviceSpan<const std::int32_t> in, course::DeviceSpan<std::int32_t> out,
                            const course::Work& work) {
    return cub_contestant(work, [in, out](void* storage, std::size_t& bytes, cudaStream_t stream) {
        return with_count(in.size(), [&](auto n) {
            return cub::DeviceScan::InclusiveSum(storage, bytes, in.data(), out.data(), n, stream);
        });
    });
}

course::Contestant cub_filter(course::DeviceSpan<const std::int32_t> in, std::int32_t threshold,
                              course::DeviceSpan<std::int32_t> out, course::DeviceSpan<std::uint32_t> count,
                              const course::Work& work) {
    return cub_contestant(work, [=](void* storage, std::size_t& bytes, cudaStream_t stream) {
        return with_count(in.size(), [&](auto n) {
            return cub::DeviceSelect::If(storage, bytes, in.data(), out.data(), count.data(), n,
                                         IsBelow{threshold}, stream);
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

course::Contestant cub_scan(course::DeviceSpan<const std::int32_t>, course::DeviceSpan<std::int32_t>,
                            const course::Work& work) {
    return without_cub(work);
}

course::Contestant cub_filter(course::DeviceSpan<const std::int32_t>, std::int32_t,
                              course::DeviceSpan<std::int32_t>, course::DeviceSpan<std::uint32_t>,
                              const course::Work& work) {
    return without_cub(work);
}
#endif

}  // namespace day24
