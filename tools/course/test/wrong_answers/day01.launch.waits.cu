// The launcher waits for the device, which its caller captures into a graph.
// exercise: day01/launch
// needs: grid_stride
// expect: cudaDeviceSynchronize: .*has not started, so nothing can wait for it
void launch_grid_stride(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                        cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;
    const unsigned needed = course::blocks_for(c.size(), kBlockSize);
    const unsigned blocks = std::min(needed, course::resident_blocks(add_grid_stride, kBlockSize));
    add_grid_stride<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK(cudaDeviceSynchronize());
}
