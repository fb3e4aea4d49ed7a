// The host code of the bulk copy, which is compiled for compute capability 9.0a.
#include <cstdint>

#include "beyond/proxy.cuh"
#include "beyond/proxy.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"

namespace day23 {

void double_by_bulk_copy(course::DeviceSpan<const std::int32_t> in, course::DeviceSpan<std::int32_t> out,
                         bool is_fenced, cudaStream_t stream) {
    course::require(in.size() == out.size() && in.size() % kCopied == 0, "double_by_bulk_copy: in has ",
                    in.size(), " elements and out ", out.size(), "; expected the same multiple of ", kCopied);
    course::require(reinterpret_cast<std::uintptr_t>(out.data()) % 16 == 0,
                    "double_by_bulk_copy: out is not 16-byte aligned; expected a multiple of 16 bytes");
    const auto tiles = static_cast<unsigned>(in.size() / kCopied);
    if (tiles == 0) return;
    if (is_fenced)
        launch_proxy_copy<ProxyFence::kEach>(in.data(), out.data(), tiles, stream);
    else
        launch_proxy_copy<ProxyFence::kNone>(in.data(), out.data(), tiles, stream);
    CUDA_CHECK_LAUNCH();
}

}  // namespace day23
