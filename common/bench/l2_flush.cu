#include "common/bench/l2_flush.hpp"
#include "common/bench/machine.hpp"
#include "common/check/check.hpp"

namespace course {
namespace {

constexpr int kBlock = 256;
constexpr int kBlocks = 1024;

__global__ void write_words(DeviceSpan<std::uint32_t> words, std::uint32_t value) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words.size(); i += stride) {
        words[i] = value;
    }
}

// The sum must be used; otherwise the compiler removes the reads.
__global__ void read_words(DeviceSpan<const std::uint32_t> words, DeviceSpan<std::uint32_t> sink) {
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    std::uint32_t mixed = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words.size(); i += stride) {
        mixed ^= words[i];
    }
    if (mixed == 0xffffffffu) sink[0] = mixed;
}

}  // namespace

std::size_t L2Flush::default_bytes() {
    return 4 * l2_cache_bytes();
}

L2Flush::L2Flush(std::size_t bytes) : buffer_(bytes / sizeof(std::uint32_t)) {}

void L2Flush::operator()(cudaStream_t stream) {
    if (buffer_.size() == 0) return;
    ++value_;
    write_words<<<kBlocks, kBlock, 0, stream>>>(buffer_.span(), value_);
    CUDA_CHECK_LAUNCH();
    read_words<<<kBlocks, kBlock, 0, stream>>>(buffer_.span(), sink_.span());
    CUDA_CHECK_LAUNCH();
}

}  // namespace course
