// Day 37 as one program: the image of M random samples of k-space at n x n x n voxels, some of
// which are checked.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 128 3000         in this folder, with a GPU
//   ./course run day37 --program                                anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "mri.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

// `text` as a whole number from 1 to `most`; 0 if it is not one.
int number(const char* text, long most) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? static_cast<int>(value) : 0;
}

// `count` floats on the device, from the host if `values` is not null.
float* on_device(std::size_t count, const float* values) {
    float* device;
    CHECK(cudaMalloc(&device, count * sizeof(float)));
    if (values != nullptr) CHECK(cudaMemcpy(device, values, count * sizeof(float), cudaMemcpyHostToDevice));
    return device;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? number(argv[1], 1024) : 16;
    const int samples = argc > 2 ? number(argv[2], 1'000'000) : 300;
    if (n == 0 || samples == 0) {
        std::fprintf(stderr, "expected a side from 1 to 1024, and a number of samples up to 1000000\n");
        return 2;
    }
    const std::size_t voxels = std::size_t{1} * n * n * n;

    // kx, ky, kz, phi_re, phi_im, d_re, d_im
    std::mt19937 random(37);
    std::uniform_real_distribution<float> in_k_space(-0.5f * n, 0.5f * n), value(-1, 1);
    std::vector<float> sample[7];
    for (int array = 0; array < 7; ++array) {
        for (int m = 0; m < samples; ++m)
            sample[array].push_back(array < 3 ? in_k_space(random) : value(random));
    }
    std::vector<float> position[3];
    for (std::size_t v = 0; v < voxels; ++v) {
        position[0].push_back(v % n / static_cast<float>(n) - 0.5f);
        position[1].push_back(v / n % n / static_cast<float>(n) - 0.5f);
        position[2].push_back(v / n / n / static_cast<float>(n) - 0.5f);
    }

    float* s[7];
    float* r[3];
    for (int array = 0; array < 7; ++array)
        s[array] = on_device(samples, sample[array].data());
    for (int axis = 0; axis < 3; ++axis)
        r[axis] = on_device(voxels, position[axis].data());
    const day37::Samples k{s[0], s[1], s[2], s[3], s[4], s[5], s[6], samples};
    const day37::Positions places{r[0], r[1], r[2], voxels};
    const day37::Mu mu{on_device(samples, nullptr), on_device(samples, nullptr)};
    const day37::Sums out{on_device(voxels, nullptr), on_device(voxels, nullptr)};

    // The first launch also loads the kernels, so the second one is timed.
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    day37::launch_shared_tile(k, mu, places, out, nullptr);
    CHECK(cudaEventRecord(start));
    day37::launch_shared_tile(k, mu, places, out, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> re(voxels), im(voxels);
    CHECK(cudaMemcpy(re.data(), out.re, voxels * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(im.data(), out.im, voxels * sizeof(float), cudaMemcpyDeviceToHost));

    double largest = 0;
    for (std::size_t v = 0; v < voxels; v += voxels / 100 + 1) {
        double sum_re = 0, sum_im = 0;
        for (int m = 0; m < samples; ++m) {
            const double mu_re = double{sample[3][m]} * sample[5][m] + double{sample[4][m]} * sample[6][m];
            const double mu_im = double{sample[3][m]} * sample[6][m] - double{sample[4][m]} * sample[5][m];
            double turns = 0;
            for (int axis = 0; axis < 3; ++axis)
                turns += static_cast<double>(sample[axis][m]) * position[axis][v];
            const double angle = 6.283185307179586 * turns;
            sum_re += mu_re * std::cos(angle) - mu_im * std::sin(angle);
            sum_im += mu_im * std::cos(angle) + mu_re * std::sin(angle);
        }
        // A NaN counts as infinite, so that no later error hides it.
        const double error = std::hypot(re[v] - sum_re, im[v] - sum_im);
        largest = std::max(largest, std::isnan(error) ? HUGE_VAL : error);
    }
    const double waves = static_cast<double>(voxels) * samples;
    std::printf("%d^3 voxels, %d samples: largest error %.2g, %.3f ms, %.1f billion waves a second\n", n,
                samples, largest, ms, 1e-6 * waves / ms);
    // Rounded phases of up to n / 2 turns, and the order of the sum.
    return largest <= 1e-5 * n * std::sqrt(samples) + 1e-7 * samples ? 0 : 1;
}
