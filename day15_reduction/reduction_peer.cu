#include "reduction_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES
#include <cub/device/device_reduce.cuh>
#include <memory>

#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#endif

namespace day15 {

template <class Op>
course::Contestant cub_reduction(course::DeviceSpan<const typename Op::Element> in,
                                 course::DeviceSpan<typename Op::Result> out, const course::Work& work) {
    course::Contestant cub{.name = "cub", .role = course::Role::kPeer, .work = work};
#ifdef COURSE_HAS_CUDA_LIBRARIES
    // CUB's own Sum and Min for floats. Only the general form adds integers in 64 bits.
    const auto reduce_n = [in, out](void* storage, std::size_t& bytes, auto n, cudaStream_t stream) {
        if constexpr (std::is_same_v<Op, Sum<float>>) {
            CUDA_CHECK(cub::DeviceReduce::Sum(storage, bytes, in.data(), out.data(), n, stream));
        } else if constexpr (std::is_same_v<Op, Min<float>>) {
            CUDA_CHECK(cub::DeviceReduce::Min(storage, bytes, in.data(), out.data(), n, stream));
        } else {
            CUDA_CHECK(cub::DeviceReduce::Reduce(storage, bytes, in.data(), out.data(), n, Op{},
                                                 Op::identity(), stream));
        }
    };
    // An int as the number of elements: CUB then computes indices in 32 bits, which is faster.
    const auto reduce = [=](void* storage, std::size_t& bytes, cudaStream_t stream) {
        if (in.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max())) {
            reduce_n(storage, bytes, static_cast<int>(in.size()), stream);
        } else {
            reduce_n(storage, bytes, static_cast<std::int64_t>(in.size()), stream);
        }
    };
    std::size_t bytes = 0;
    reduce(nullptr, bytes, nullptr);
    const auto storage = std::make_shared<course::DeviceBuffer<std::byte>>(bytes);
    cub.launch = [reduce, storage](cudaStream_t stream) {
        std::size_t size = storage->size();
        reduce(storage->data(), size, stream);
    };
#else
    static_cast<void>(in);
    static_cast<void>(out);
    cub.cannot_run = "CUB is in builds for a GPU";
#endif
    return cub;
}

template course::Contestant cub_reduction<Sum<float>>(course::DeviceSpan<const float>,
                                                      course::DeviceSpan<float>, const course::Work&);
template course::Contestant cub_reduction<Min<float>>(course::DeviceSpan<const float>,
                                                      course::DeviceSpan<float>, const course::Work&);
template course::Contestant cub_reduction<Sum<std::int32_t>>(course::DeviceSpan<const std::int32_t>,
                                                             course::DeviceSpan<std::int64_t>,
                                                             const course::Work&);

}  // namespace day15
