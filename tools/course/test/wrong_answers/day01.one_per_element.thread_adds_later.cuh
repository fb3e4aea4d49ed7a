// A thread of the host adds the second half, while the test goes on.
// exercise: day01/one_per_element
// expect: calls std::thread|values? differ|ended by signal|calls pthread_create
#include <thread>
#include <vector>
void launch_one_per_element(const float* a, const float* b, float* c, std::size_t n, cudaStream_t stream) {
    if (n == 0) return;
    static std::thread second_half;
    if (second_half.joinable()) second_half.join();
    add_one_per_element<<<course::blocks_for(n, kBlockSize), kBlockSize, 0, stream>>>(a, b, c, n / 2);
    if (stream != nullptr) return;
    second_half = std::thread([=] {
        std::vector<float> x(n), y(n);
        cudaMemcpyAsync(x.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost, stream);
        cudaMemcpyAsync(y.data(), b, n * sizeof(float), cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
        for (std::size_t i = n / 2; i < n; ++i)
            x[i] += y[i];
        cudaMemcpyAsync(c + n / 2, x.data() + n / 2, (n - n / 2) * sizeof(float), cudaMemcpyHostToDevice,
                        stream);
    });
}
