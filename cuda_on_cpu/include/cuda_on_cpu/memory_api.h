// The runtime API for memory pools, managed memory, peers and interprocess handles. Part of
// cuda_runtime_api.h.
#pragma once

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- Pools. Freed memory is given back to the system at once: a pool counts, and reserves no more than what is in use ---
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const struct cudaMemPoolProps* properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc* list, size_t count);
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 struct cudaMemLocation* location);
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
// Not supported: memory of another process.
cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                               enum cudaMemAllocationHandleType type, unsigned flags);
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                 enum cudaMemAllocationHandleType type, unsigned flags);
cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData* data, void* pointer);
cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool,
                                     struct cudaMemPoolPtrExportData* data);

// --- Managed memory: nothing moves. Advice is checked, and told when asked for ---
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location);
cudaError_t cudaMemRangeGetAttribute(void* data, size_t data_bytes, enum cudaMemRangeAttribute attribute,
                                     const void* pointer, size_t bytes);
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* data_bytes, enum cudaMemRangeAttribute* attributes,
                                      size_t count, const void* pointer, size_t bytes);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer,
#ifdef __cplusplus
                                     size_t bytes = 0, unsigned flags = cudaMemAttachSingle);
#else
                                     size_t bytes, unsigned flags);
#endif

// --- Peers: of several devices (CUDA_ON_CPU_DEVICES) each is a peer of all others ---
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr attribute, int device, int peer);
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream);

// --- Handles for other processes ---
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer);
cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void* pointer);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle);

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer);

#ifdef __cplusplus
}
#endif
