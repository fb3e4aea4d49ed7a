// The launch waits for the device, which its caller captures into a graph.
// exercise: day01/launch
// needs: grid_stride
// expect: cudaDeviceSynchronize: .*has not started, so nothing can wait for it
void launch_grid_stride(const float* a, const float* b, float* c, std::size_t n, cudaStream_t stream) {
    if (n == 0) return;
    const unsigned needed = course::blocks_for(n, kBlockSize);
    const unsigned blocks = std::min(needed, course::resident_blocks(add_grid_stride, kBlockSize));
    add_grid_stride<<<blocks, kBlockSize, 0, stream>>>(a, b, c, n);
    CUDA_CHECK(cudaDeviceSynchronize());
}
