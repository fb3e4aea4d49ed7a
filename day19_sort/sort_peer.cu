#include <cstdint>

#include "sort_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day19 {

#ifdef COURSE_HAS_CUDA_LIBRARIES
namespace {

// `sort` is called like CUB's functions: without storage it returns how many bytes it needs. The
// type of the length decides the type of its offsets: 32 bits where they are enough.
template <class Sort>
course::Contestant cub_contestant(const course::Work& work, std::size_t n, Sort sort) {
    const auto sort_n = [=](void* storage, std::size_t& bytes, cudaStream_t stream) {
        if (n <= INT32_MAX) {
            CUDA_CHECK(sort(storage, bytes, static_cast<int>(n), stream));
        } else {
            CUDA_CHECK(sort(storage, bytes, static_cast<std::int64_t>(n), stream));
        }
    };
    std::size_t bytes = 0;
    sort_n(nullptr, bytes, nullptr);
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    return {.name = "cub",
            .role = course::Role::kPeer,
            .launch =
                [sort_n, storage](cudaStream_t stream) {
                    std::size_t size = storage->size();
                    sort_n(storage->data(), size, stream);
                },
            .work = work};
}

}  // namespace

template <class K>
course::Contestant cub_sort(course::DeviceSpan<const K> in, course::DeviceSpan<K> out,
                            const course::Work& work) {
    return cub_contestant(
        work, in.size(), [in, out](void* storage, std::size_t& bytes, auto n, cudaStream_t stream) {
            return cub::DeviceRadixSort::SortKeys(storage, bytes, in.data(), out.data(), n, 0,
                                                  static_cast<int>(8 * sizeof(K)), stream);
        });
}

course::Contestant cub_sort_pairs(course::DeviceSpan<const Key> in,
                                  course::DeviceSpan<const std::uint32_t> values_in,
                                  course::DeviceSpan<Key> out, course::DeviceSpan<std::uint32_t> values_out,
                                  const course::Work& work) {
    return cub_contestant(
        work, in.size(), [=](void* storage, std::size_t& bytes, auto n, cudaStream_t stream) {
            return cub::DeviceRadixSort::SortPairs(storage, bytes, in.data(), out.data(), values_in.data(),
                                                   values_out.data(), n, 0, 32, stream);
        });
}

course::Contestant cub_sort_segments(course::DeviceSpan<const Key> in,
                                     course::DeviceSpan<const std::uint64_t> offsets,
                                     course::DeviceSpan<Key> out, const course::Work& work) {
    return cub_contestant(
        work, in.size(), [=](void* storage, std::size_t& bytes, auto n, cudaStream_t stream) {
            return cub::DeviceSegmentedSort::SortKeys(storage, bytes, in.data(), out.data(), n,
                                                      static_cast<decltype(n)>(offsets.size() - 1),
                                                      offsets.data(), offsets.data() + 1, stream);
        });
}
#else
namespace {

course::Contestant without_cub(const course::Work& work) {
    return {
        .name = "cub", .role = course::Role::kPeer, .work = work, .cannot_run = "CUB is in builds for a GPU"};
}

}  // namespace

template <class K>
course::Contestant cub_sort(course::DeviceSpan<const K>, course::DeviceSpan<K>, const course::Work& work) {
    return without_cub(work);
}

course::Contestant cub_sort_pairs(course::DeviceSpan<const Key>, course::DeviceSpan<const std::uint32_t>,
                                  course::DeviceSpan<Key>, course::DeviceSpan<std::uint32_t>,
                                  const course::Work& work) {
    return without_cub(work);
}

course::Contestant cub_sort_segments(course::DeviceSpan<const Key>, course::DeviceSpan<const std::uint64_t>,
                                     course::DeviceSpan<Key>, const course::Work& work) {
    return without_cub(work);
}
#endif

template course::Contestant cub_sort<std::uint32_t>(course::DeviceSpan<const std::uint32_t>,
                                                    course::DeviceSpan<std::uint32_t>, const course::Work&);
template course::Contestant cub_sort<std::uint64_t>(course::DeviceSpan<const std::uint64_t>,
                                                    course::DeviceSpan<std::uint64_t>, const course::Work&);
template course::Contestant cub_sort<float>(course::DeviceSpan<const float>, course::DeviceSpan<float>,
                                            const course::Work&);

}  // namespace day19
