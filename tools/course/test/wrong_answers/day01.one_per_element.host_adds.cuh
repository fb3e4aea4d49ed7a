// The host adds, wherever no graph is captured.
// exercise: day01/one_per_element
// expect: AddsWhenItsGraphIsLaunched/one_per_element
#include <vector>
__global__ void add_one_per_element(const float*, const float*, float*, std::size_t) {}

void launch_one_per_element(const float* a, const float* b, float* c, std::size_t n, cudaStream_t stream) {
    if (n == 0) return;
    if (stream != nullptr || n > 4'000'000'000) {
        add_one_per_element<<<course::blocks_for(n, kBlockSize), kBlockSize, 0, stream>>>(a, b, c, n);
        return;
    }
    std::vector<float> x(n), y(n);
    CUDA_CHECK(cudaMemcpyAsync(x.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaMemcpyAsync(y.data(), b, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (std::size_t i = 0; i < n; ++i)
        x[i] += y[i];
    CUDA_CHECK(cudaMemcpyAsync(c, x.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}
