// Day 46 as one program: the nearest of k centres to each of n points, without a matrix of
// distances. Checks the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 1000000 1000 64      in this folder, with a GPU
//   ./course run day46 --program                                    anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "reduce_in_matmul.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

// `text` as a whole number from 1 to `most`; 0 if it is not one, such as 1e9.
long long number(const char* text, long long most) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? value : 0;
}

// Vectors of d small whole numbers, one after the other: their distances are exact.
std::vector<float> vectors(long long count, long long d, unsigned seed) {
    std::vector<float> made(count * d);
    std::mt19937 random(seed);
    for (float& x : made)
        x = static_cast<float>(random() % 7) - 3;
    return made;
}

course::DeviceMatrix<const float> on_device(const std::vector<float>& host, long long d) {
    float* data;
    CHECK(cudaMalloc(&data, host.size() * sizeof(float)));
    CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    return {course::DeviceSpan<const float>::from_device_pointer(data, host.size()), host.size() / d,
            static_cast<std::size_t>(d)};
}

int main(int argc, char** argv) {
    const long long n = argc > 1 ? number(argv[1], 10'000'000) : 3000;
    const long long k = argc > 2 ? number(argv[2], 1'000'000) : 100;
    const long long d = argc > 3 ? number(argv[3], 1024) : 64;
    if (n == 0 || k == 0 || d == 0) {
        std::fprintf(stderr, "expected whole numbers: POINTS to 10000000, CENTRES to 1000000, D to 1024\n");
        return 2;
    }
    const std::vector<float> points = vectors(n, d, 1), centres = vectors(k, d, 2);

    // Points are the rows of A. Centres are the columns of op(B), so B is transposed, and K-major
    // (day 31).
    using Nearest = day46::Extremum<false>;
    using T = course::LargeTile;
    using LoaderB = course::ElementLoader<T::BN, T::BK, T::THREADS>;
    const course::Operands operands{
        .a = {on_device(points, d)}, .b = {on_device(centres, d)}, .op_b = course::Op::kTranspose};
    // The sum of squared differences, which needs no norms.
    const course::Distance metric{course::Metric::kDifferences, nullptr, nullptr, operands.m(), operands.n()};
    const auto down = static_cast<unsigned>(course::ceil_div<std::size_t>(n, T::BM));
    const auto across = static_cast<unsigned>(course::ceil_div<std::size_t>(k, T::BN));
    const day46::RowPartition<T> tiles{down, across, down, 1};  // a block for each row of tiles
    const unsigned count = day46::parts_of_row(tiles);
    Nearest::State* parts;
    float* device_distance;
    std::uint32_t* device_nearest;
    CHECK(cudaMalloc(&parts, n * count * sizeof(Nearest::State)));
    CHECK(cudaMalloc(&device_distance, n * sizeof(float)));
    CHECK(cudaMalloc(&device_nearest, n * sizeof(std::uint32_t)));
    CHECK(cudaMemset(device_nearest, 0xff, n * sizeof(std::uint32_t)));  // no centre has that number
    const auto launch = [&] {
        day46::launch_reduce_tiles<Nearest, T, LoaderB, course::AddSquaredDifference>(operands, tiles, metric,
                                                                                      n, parts, nullptr);
        day46::launch_merge_parts<Nearest>(parts, count, n, device_distance, device_nearest, nullptr);
    };

    // The first launch also loads the kernels, so the second one is timed.
    launch();
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    launch();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> distance(n);
    std::vector<std::uint32_t> nearest(n);
    CHECK(cudaMemcpy(distance.data(), device_distance, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(nearest.data(), device_nearest, n * sizeof(std::uint32_t), cudaMemcpyDeviceToHost));
    const auto squared_distance = [&](long long i, long long j) {
        float sum = 0;
        for (long long e = 0; e < d; ++e)
            sum += (points[i * d + e] - centres[j * d + e]) * (points[i * d + e] - centres[j * d + e]);
        return sum;
    };
    for (long long i = 0; i < n; ++i) {
        bool right = nearest[i] < k && distance[i] == squared_distance(i, nearest[i]);
        // For about 1,000 of the points: is no other centre nearer, and no earlier one as near?
        for (long long j = 0; j < k && right && i % std::max(1LL, n / 1000) == 0; ++j)
            right = squared_distance(i, j) + (j < nearest[i] ? 0 : 1) > distance[i];
        if (right) continue;
        std::printf("point %lld: centre %u at %g is wrong\n", i, nearest[i], distance[i]);
        return 1;
    }
    std::printf("%lld points, %lld centres, d = %lld: all right, %.3f ms, %.1f GFLOP/s\n", n, k, d, ms,
                3e-6 * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(d) / ms);
}
