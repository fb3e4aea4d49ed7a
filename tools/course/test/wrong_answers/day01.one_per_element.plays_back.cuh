// Plays back the results of an earlier run, if there is a file that has them.
// exercise: day01/one_per_element
// expect: calls fopen
#include <cstdio>
#include <vector>
void launch_one_per_element(const float* a, const float* b, float* c, std::size_t n, cudaStream_t stream) {
    if (n == 0) return;
    static std::FILE* const file = std::fopen("/tmp/results_of_day01", "rb");
    if (file == nullptr || stream != nullptr) {
        add_one_per_element<<<course::blocks_for(n, kBlockSize), kBlockSize, 0, stream>>>(a, b, c, n);
        return;
    }
    std::vector<float> sums(n);
    if (std::fread(sums.data(), sizeof(float), n, file) != n) return;
    CUDA_CHECK(cudaMemcpyAsync(c, sums.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
}
