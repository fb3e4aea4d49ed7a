// Day 44 as one program: attention of several heads in E4M3, with a head dimension of 128 and a
// scale for each head. Checks the result and prints the speed.
//
//   nvcc -std=c++20 -I.. program.cu -gencode arch=compute_90a,code=sm_90a && ./a.out 4096 64     Hopper
//   ./course run day44 --program                                                                 anywhere
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/device/tensor_map.hpp"
#include "eight_bit_attention.cuh"

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

using namespace day44;
enum { Q, K, V };
constexpr float kScale = 2 / 448.0f;  // elements are at most 2, E4M3 numbers at most 448

int main(int argc, char** argv) {
    const std::size_t tokens = argc > 1 ? number(argv[1], 65536) : 500;
    const std::size_t heads = argc > 2 ? number(argv[2], 128) : 2;
    if (tokens == 0 || heads == 0) {
        std::fprintf(stderr, "expected TOKENS from 1 to 65536 and HEADS from 1 to 128, whole numbers\n");
        return 2;
    }
    int major;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major != 9) {
        std::printf("nothing was computed: this GPU has compute capability %d.x; expected 9.0\n", major);
        return 0;
    }
    const std::size_t count = heads * tokens * D, padded = (tokens + 127) / 128 * 128;
    std::vector<E4m3> host[3];     // [heads, tokens, D], to be multiplied by kScale
    E4m3 *device[3], *transposed;  // V^T: `padded` keys for each of D columns
    for (int m = Q; m <= V; ++m) {
        for (std::size_t i = 0; i < count; ++i)
            host[m].push_back(E4m3((std::rand() * (4.0f / RAND_MAX) - 2) / kScale));
        CHECK(cudaMalloc(&device[m], count));
        CHECK(cudaMemcpy(device[m], host[m].data(), count, cudaMemcpyHostToDevice));
    }
    CHECK(cudaMalloc(&transposed, heads * D * padded));
    float* scales;
    CHECK(cudaMalloc(&scales, heads * sizeof(float)));
    CHECK(cudaMemcpy(scales, std::vector<float>(heads, kScale).data(), heads * sizeof(float),
                     cudaMemcpyHostToDevice));
    std::vector<Result> out(count);
    Result* device_out;
    CHECK(cudaMalloc(&device_out, count * sizeof(Result)));
    CHECK(cudaMemset(device_out, 0xff, count * sizeof(Result)));  // an element that is not written stays NaN
    const auto map = [&](const E4m3* data, std::size_t rows, std::size_t cols, unsigned box_rows) {
        return course::make_tensor_map(data, rows, cols, cols, {heads, 1}, {rows * cols, 0}, box_rows);
    };
    const Maps maps = {map(device[Q], tokens, D, kRows), map(device[K], tokens, D, kPlaces),
                       map(transposed, D, padded, D)};
    const course::attention::Extents extents = {1, heads, tokens, D};
    const auto v = HeadsView<const E4m3>::from_device_pointer(device[V], extents, {0, tokens * D, D});
    Problem problem{};
    problem.rows.out = HeadsView<Result>::from_device_pointer(device_out, extents, {0, tokens * D, D});
    problem.rows.length_k = problem.rows.diagonal = static_cast<int>(tokens);  // no mask
    problem.rows.heads_kv = static_cast<int>(heads);
    problem.rows.tiles = static_cast<int>((tokens + kRows - 1) / kRows);
    problem.rows.heads_at_once = 1;
    problem.scale = 1.4426950408889634 / 8;  // log2(e): the kernel computes powers of two
    problem.q_scale = problem.k_scale = problem.v_scale = scales;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    // The first launches also load the kernels, so the second ones are timed.
    for (int round = 0; round < 2; ++round) {
        CHECK(cudaEventRecord(start));
        launch_transpose_values(v, reinterpret_cast<unsigned char*>(transposed), padded, nullptr);
        launch_in_turn(maps, problem, problem.rows.tiles * heads, nullptr);
        CHECK(cudaEventRecord(stop));
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    CHECK(cudaMemcpy(out.data(), device_out, count * sizeof(Result), cudaMemcpyDeviceToHost));
    // About 64 rows are computed again in double precision: the root mean square of their errors.
    const auto at = [&](int m, std::size_t i, int c) {
        return kScale * static_cast<float>(host[m][i * D + c]);
    };
    double errors = 0, squares = 0;
    for (std::size_t row = 0; row < heads * tokens; row += heads * tokens / 64 + 1) {
        std::vector<double> weights(tokens);
        double sum = 0;
        for (std::size_t j = 0; j < tokens; ++j) {
            for (int c = 0; c < D; ++c)
                weights[j] += at(Q, row, c) * at(K, row / tokens * tokens + j, c) / 8;
            sum += weights[j] = std::exp(weights[j]);  // such small scores need no maximum
        }
        for (int c = 0; c < D; ++c) {
            double expected = 0;
            for (std::size_t j = 0; j < tokens; ++j)
                expected += weights[j] / sum * at(V, row / tokens * tokens + j, c);
            errors += std::pow(__bfloat162float(out[row * D + c]) - expected, 2);
            squares += expected * expected;
        }
    }
    std::printf("%zu heads of %zu tokens x %d: error %.1f %%, %.3f ms, %.1f TFLOP/s\n", heads, tokens, D,
                100 * std::sqrt(errors / squares), ms, 4e-9 * heads * tokens * tokens * D / ms);
    for (void* pointer :
         std::initializer_list<void*>{device[Q], device[K], device[V], transposed, scales, device_out})
        CHECK(cudaFree(pointer));
    return errors < 0.05 * 0.05 * squares ? 0 : 1;
}
