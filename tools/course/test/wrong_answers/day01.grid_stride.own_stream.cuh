// Adds on a stream of its own, which nothing waits for.
// exercise: day01/grid_stride
// expect: values? (was|were) never written
// needs: launch
void launch_grid_stride(const float* a, const float* b, float* c, std::size_t n, cudaStream_t stream) {
    static cudaStream_t own = nullptr;
    if (n == 0) return;
    if (own == nullptr) CUDA_CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    const unsigned needed = course::blocks_for(n, kBlockSize);
    const unsigned blocks = std::min(needed, course::resident_blocks(add_grid_stride, kBlockSize));
    add_grid_stride<<<blocks, kBlockSize, 0, stream != nullptr ? stream : own>>>(a, b, c, n);
}
