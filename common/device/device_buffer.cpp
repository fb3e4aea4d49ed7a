#include "common/device/device_buffer.hpp"

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <stdexcept>

#include "common/check/bytes.hpp"

namespace course {
namespace {

std::atomic<std::size_t> bytes_held = 0;

void require_same_length(const char* what, std::size_t host_count, std::size_t device_count) {
    if (host_count != device_count) {
        throw std::invalid_argument(
            fmt::format("{}: the host span has {} elements, expected {} as in the device buffer", what,
                        host_count, device_count));
    }
}

}  // namespace

void* allocate_on_device(std::size_t count, std::size_t element_bytes) {
    if (count == 0) return nullptr;
    if (count > std::numeric_limits<std::size_t>::max() / element_bytes) {
        throw std::length_error(
            fmt::format("DeviceBuffer: {} elements of {} bytes are more bytes than can be counted", count,
                        element_bytes));
    }
    void* memory = nullptr;
    const cudaError_t code = cudaMalloc(&memory, count * element_bytes);
    if (code == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        std::size_t free_bytes = 0;
        std::size_t total_bytes = 0;
        CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
        throw CudaError(
            code, fmt::format("DeviceBuffer: out of device memory: asked for {} ({} elements of {} bytes); "
                              "this device has {}, of which {} are free",
                              text_of_bytes(count * element_bytes), count, element_bytes,
                              text_of_bytes(total_bytes), text_of_bytes(free_bytes)));
    }
    CUDA_CHECK(code);
    bytes_held += count * element_bytes;
    return memory;
}

void free_on_device(void* memory, std::size_t bytes) {
    static_cast<void>(cudaFree(memory));
    bytes_held -= bytes;
}

std::size_t device_buffer_bytes() {
    return bytes_held;
}

void copy_host_to_device(void* device, std::size_t device_count, const void* host, std::size_t host_count,
                         std::size_t element_bytes, cudaStream_t stream) {
    require_same_length("DeviceBuffer::copy_from", host_count, device_count);
    if (host_count == 0) return;
    CUDA_CHECK(cudaMemcpyAsync(device, host, host_count * element_bytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

void copy_device_to_host(void* host, std::size_t host_count, const void* device, std::size_t device_count,
                         std::size_t element_bytes, cudaStream_t stream) {
    require_same_length("DeviceBuffer::copy_to", host_count, device_count);
    if (host_count == 0) return;
    CUDA_CHECK(cudaMemcpyAsync(host, device, host_count * element_bytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace course
