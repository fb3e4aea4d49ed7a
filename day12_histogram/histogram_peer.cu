#include "histogram_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_histogram.cuh>
#include <limits>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day12 {
namespace {

template <class Value>
course::Contestant make_contestant(course::DeviceSpan<const Value> values, Range range,
                                   course::DeviceSpan<std::uint32_t> counts) {
    course::Contestant cub;
    cub.name = "cub";
    cub.role = course::Role::kPeer;
#ifdef COURSE_HAS_CUDA_LIBRARIES
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    if (values.size() > kMost || counts.size() >= kMost || range.upper > std::numeric_limits<int>::max()) {
        cub.cannot_run = "called here with values, bins and borders that are ints";
        return cub;
    }
    const auto count = [=](void* storage, std::size_t& bytes, cudaStream_t stream) {
        CUDA_CHECK(cub::DeviceHistogram::HistogramEven(
            storage, bytes, values.data(), counts.data(), static_cast<int>(counts.size() + 1),
            static_cast<int>(range.lower), static_cast<int>(range.upper), static_cast<int>(values.size()),
            stream));
    };
    std::size_t bytes = 0;
    count(nullptr, bytes, nullptr);  // only returns how much storage it needs
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [=](cudaStream_t stream) {
        std::size_t available = storage->size();
        count(storage->data(), available, stream);
    };
#else
    static_cast<void>(values);
    static_cast<void>(range);
    static_cast<void>(counts);
    cub.cannot_run = "CUB is in builds for a GPU";
#endif
    return cub;
}

}  // namespace

course::Contestant cub_histogram(course::DeviceSpan<const std::uint8_t> values, Range range,
                                 course::DeviceSpan<std::uint32_t> counts) {
    return make_contestant(values, range, counts);
}

course::Contestant cub_histogram(course::DeviceSpan<const std::int32_t> values, Range range,
                                 course::DeviceSpan<std::uint32_t> counts) {
    return make_contestant(values, range, counts);
}

}  // namespace day12
