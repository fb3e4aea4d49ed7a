#include "filter_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day17 {

#ifdef COURSE_HAS_CUDA_LIBRARIES
namespace {

struct IsBelow {
    std::int32_t threshold;
    __host__ __device__ bool operator()(std::int32_t value) const { return value < threshold; }
};

}  // namespace
#endif

course::Contestant cub_filter([[maybe_unused]] Operation operation,
                              [[maybe_unused]] course::DeviceSpan<const std::int32_t> in,
                              [[maybe_unused]] std::int32_t threshold,
                              [[maybe_unused]] course::DeviceSpan<std::int32_t> out,
                              [[maybe_unused]] course::DeviceSpan<Count> count, const course::Work& work) {
    course::Contestant cub{.name = "cub", .role = course::Role::kPeer, .work = work};
#ifdef COURSE_HAS_CUDA_LIBRARIES
    // `n`: an int where it can count the elements. With an int, CUB may compute indices in 32 bits.
    const auto filter_n = [=](void* storage, std::size_t& bytes, auto n, cudaStream_t stream) {
        switch (operation) {
            case Operation::kSelect:
                return cub::DeviceSelect::If(storage, bytes, in.data(), out.data(), count.data(), n,
                                             IsBelow{threshold}, stream);
            case Operation::kUnique:
                return cub::DeviceSelect::Unique(storage, bytes, in.data(), out.data(), count.data(), n,
                                                 stream);
            case Operation::kPartition:
                return cub::DevicePartition::If(storage, bytes, in.data(), out.data(), count.data(), n,
                                                IsBelow{threshold}, stream);
        }
        return cudaErrorInvalidValue;
    };
    const auto filter = [=](void* storage, std::size_t& bytes, cudaStream_t stream) {
        if (in.size() <= INT32_MAX) {
            CUDA_CHECK(filter_n(storage, bytes, static_cast<int>(in.size()), stream));
        } else {
            CUDA_CHECK(filter_n(storage, bytes, static_cast<std::int64_t>(in.size()), stream));
        }
    };
    std::size_t bytes = 0;
    filter(nullptr, bytes, nullptr);
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [filter, storage](cudaStream_t stream) {
        std::size_t size = storage->size();
        filter(storage->data(), size, stream);
    };
#else
    cub.cannot_run = "CUB is in builds for a GPU";
#endif
    return cub;
}

}  // namespace day17
