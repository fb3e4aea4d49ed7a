// The weights are copied to constant memory as if they went to the host.
// exercise: day10/constant_filter
// expect: cudaMemcpyToSymbolAsync: kind 2 \(cudaMemcpyDeviceToHost\); expected cudaMemcpyHostToDevice
void put_into_constant_memory(const float* weights, Size filter, cudaStream_t stream) {
    const std::size_t bytes = static_cast<std::size_t>(filter.rows * filter.cols) * sizeof(float);
    cudaMemcpyToSymbolAsync(constant_weights, weights, bytes, 0, cudaMemcpyDeviceToHost, stream);
}
