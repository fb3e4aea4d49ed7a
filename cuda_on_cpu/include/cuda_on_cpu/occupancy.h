// Occupancy beyond cuda_on_cpu/kernel_api.h.
#pragma once

#include "cuda_on_cpu/kernel_api.h"

template <class Function>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Function* kernel,
                                                                   int block_size, size_t dynamic_shared,
                                                                   unsigned) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, block_size, dynamic_shared);
}
template <class Function>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* block_size, Function* kernel,
                                                        size_t dynamic_shared = 0, int limit = 0,
                                                        unsigned = 0) {
    return cudaOccupancyMaxPotentialBlockSize(min_grid, block_size, kernel, dynamic_shared, limit);
}

// `bytes_of` returns the dynamic shared memory that a block of that many threads needs. Among equal
// occupancies the largest block is returned.
template <class BytesOf, class Function>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* min_grid, int* block_size, Function* kernel,
                                                           BytesOf bytes_of, int limit = 0) {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    int multiprocessors = 0;
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    int most = 0;
    *block_size = 0;
    *min_grid = 0;
    const bool limited = limit > 0 && limit < attributes.maxThreadsPerBlock;
    const int top = limited ? limit : attributes.maxThreadsPerBlock;
    for (int threads = top; error == cudaSuccess && threads > 0; threads = (threads - 1) / 32 * 32) {
        int blocks = 0;
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads,
                                                              static_cast<size_t>(bytes_of(threads)));
        if (blocks * threads <= most) continue;
        most = blocks * threads;
        *block_size = threads;
        *min_grid = blocks * multiprocessors;
    }
    return error;
}

// The dynamic shared memory available to each of `blocks` resident blocks.
template <class Function>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, Function* kernel, int blocks, int) {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    int all = 0, reserved = 0;
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, 0);
    if (error != cudaSuccess || blocks < 1) return error == cudaSuccess ? cudaErrorInvalidValue : error;
    const int share = all / blocks / 128 * 128 - reserved - static_cast<int>(attributes.sharedSizeBytes);
    const int most = attributes.maxDynamicSharedSizeBytes;
    *bytes = static_cast<size_t>(share < 0 ? 0 : share > most ? most : share);
    return cudaSuccess;
}

// Clusters of up to 8 blocks always fit; larger ones need an attribute of the kernel.
template <class Function>
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, Function* kernel,
                                                 const cudaLaunchConfig_t* config) {
    int clusters = 0;
    const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, kernel, config);
    *blocks = error == cudaSuccess ? 8 : 0;
    return error;
}
