#include "devices.hpp"

#include "current_device.hpp"
#include "errors.hpp"
#include "peer_guard.hpp"

namespace cuda_on_cpu {

cudaError_t expect_device(const char* function, int device) {
    if (device >= 0 && device < device_count()) return cudaSuccess;
    if (device_count() == 1)
        return refuse(cudaErrorInvalidDevice, function,
                      "device %d; there is one device, 0 (CUDA_ON_CPU_DEVICES=2 makes two)", device);
    return refuse(cudaErrorInvalidDevice, function, "device %d; there are %d, from 0", device,
                  device_count());
}

namespace {

cudaError_t check_peer(const char* function, int peer) {
    if (const cudaError_t error = expect_device(function, peer); error != cudaSuccess) return error;
    if (peer != current_device()) return cudaSuccess;
    return refuse(cudaErrorPeerAccessUnsupported, function,
                  "device %d is the current device, and not its own peer", peer);
}

}  // namespace

cudaError_t enable_peer_access(const char* function, int peer) {
    if (const cudaError_t error = check_peer(function, peer); error != cudaSuccess) return error;
    if (set_peer_access(current_device(), peer, true)) return cudaSuccess;
    // No message, because programs often ignore this error.
    return set_last_error(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t disable_peer_access(const char* function, int peer) {
    if (const cudaError_t error = check_peer(function, peer); error != cudaSuccess) return error;
    if (set_peer_access(current_device(), peer, false)) return cudaSuccess;
    return refuse(cudaErrorPeerAccessNotEnabled, function,
                  "device %d has no access to the memory of device %d", current_device(), peer);
}

}  // namespace cuda_on_cpu
