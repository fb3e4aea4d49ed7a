// The same seed, other numbers: what of std::mt19937 is the same with every compiler, and what is
// not.
//
//   nvcc same_seed.cu -o same_seed && ./same_seed        g++ -x c++ same_seed.cu: without the kernels
//   ./course run day01_vector_add/beyond/same_seed.cu
#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#define __host__
#define __device__
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

constexpr int kNumbers = 10000;
constexpr std::uint32_t kSeed = 42;
constexpr float kLow = -3.3f;
constexpr float kHigh = 1.7f;

// --- Ours: the same bits everywhere ----------------------------------------------------------------

// From 32 random bits a number in [0, 1): the first 24 of them, as many as a float can hold. Both
// steps are exact.
__host__ __device__ inline float to_unit(std::uint32_t bits) {
    return static_cast<float>(bits >> 8) * 0x1p-24f;
}

// In [low, high]. fmaf() rounds once, on the host and on the device. With low + u * (high - low) it
// would be the compiler's choice whether the product is rounded, too.
__host__ __device__ inline float to_range(std::uint32_t bits, float low, float high) {
    return fmaf(to_unit(bits), high - low, low);
}

// Rounded twice, whatever the compiler would like: the product goes through memory.
float rounded_twice(std::uint32_t bits, float low, float high) {
    volatile float product = to_unit(bits) * (high - low);
    return low + product;
}

// A normal number (G. E. P. Box, M. E. Muller, 1958). Its logarithm and its cosine are the
// library's.
__host__ __device__ inline float box_muller(std::uint32_t first, std::uint32_t second) {
    const float radius = sqrtf(-2.0f * logf(1.0f - to_unit(first)));
    return radius * cosf(6.2831853f * to_unit(second));
}

// A number for the bits of all values (FNV-1a): two sequences that differ have other ones.
std::uint64_t fingerprint(const std::vector<float>& values) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const float value : values) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash;
}

int differences(const std::vector<float>& x, const std::vector<float>& y) {
    int different = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
        different += x[i] != y[i];
    return different;
}

// --- The same in a kernel --------------------------------------------------------------------------

#ifdef __CUDACC__
#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

__global__ void map_in_kernel(const std::uint32_t* bits, float* uniform, float* normal, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uniform[i] = to_range(bits[i], kLow, kHigh);
    normal[i] = box_muller(bits[i], bits[(i + 1) % n]);
}

void map_on_gpu(const std::vector<std::uint32_t>& bits, std::vector<float>& uniform,
                std::vector<float>& normal) {
    const int n = static_cast<int>(bits.size());
    const std::size_t bytes = n * sizeof(float);
    std::uint32_t* bits_d = nullptr;
    float *uniform_d = nullptr, *normal_d = nullptr;
    CUDA_CHECK(cudaMalloc(&bits_d, bytes));
    CUDA_CHECK(cudaMalloc(&uniform_d, bytes));
    CUDA_CHECK(cudaMalloc(&normal_d, bytes));
    CUDA_CHECK(cudaMemcpy(bits_d, bits.data(), bytes, cudaMemcpyHostToDevice));
    map_in_kernel<<<(n + 255) / 256, 256>>>(bits_d, uniform_d, normal_d, n);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(uniform.data(), uniform_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(normal.data(), normal_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(bits_d));
    CUDA_CHECK(cudaFree(uniform_d));
    CUDA_CHECK(cudaFree(normal_d));
}
#endif

// --- The program -----------------------------------------------------------------------------------

void print_order(float left, float, float first) {
    printf("f(draw(), draw()): the %s argument was drawn first\n", left == first ? "left" : "right");
}

int main() {
    // 1. The engine. The C++ standard fixes its 10,000th number.
    std::mt19937 engine;
    engine.discard(9999);
    const auto last = static_cast<std::uint32_t>(engine());
    printf("the engine: number 10000 is %u; expected 4123659995\n", last);
    if (last != 4123659995u) return 1;

    // 2. Our own map from bits to numbers.
    engine.seed(kSeed);
    std::vector<std::uint32_t> bits(kNumbers);
    for (std::uint32_t& each : bits)
        each = static_cast<std::uint32_t>(engine());
    std::vector<float> uniform(kNumbers), twice(kNumbers), normal(kNumbers);
    for (int i = 0; i < kNumbers; ++i) {
        uniform[i] = to_range(bits[i], kLow, kHigh);
        twice[i] = rounded_twice(bits[i], kLow, kHigh);
        normal[i] = box_muller(bits[i], bits[(i + 1) % kNumbers]);
    }
    printf("our uniform numbers: %a %a %a, fingerprint %016llx\n", uniform[0], uniform[1], uniform[2],
           static_cast<unsigned long long>(fingerprint(uniform)));
    printf("rounded twice instead of once: %d of %d differ\n", differences(uniform, twice), kNumbers);

    // 3. The same in a kernel.
#ifdef __CUDACC__
    std::vector<float> uniform_of_kernel(kNumbers), normal_of_kernel(kNumbers);
    map_on_gpu(bits, uniform_of_kernel, normal_of_kernel);
    const int different = differences(uniform, uniform_of_kernel);
    printf("our uniform numbers in a kernel: %d of %d differ\n", different, kNumbers);
    printf("normal numbers, by a logarithm and a cosine, in a kernel: %d of %d differ\n",
           differences(normal, normal_of_kernel), kNumbers);
    if (different != 0) return 1;
#endif

    // 4. The standard library's distributions. The standard says how the numbers are distributed,
    //    not which they are.
    const auto draw = [&engine] { return to_unit(static_cast<std::uint32_t>(engine())); };
    std::uniform_int_distribution<int> digit(0, 9);
    std::normal_distribution<float> gaussian;
    engine.seed(kSeed);
    printf("uniform_int_distribution:");
    for (int i = 0; i < 10; ++i)
        printf(" %d", digit(engine));
    engine.seed(kSeed);
    printf("\nnormal_distribution:");
    for (int i = 0; i < 4; ++i)
        printf(" %a", gaussian(engine));
    printf("\n");

    // 5. The order in which arguments are computed is the compiler's choice.
    engine.seed(kSeed);
    print_order(draw(), draw(), to_unit(bits[0]));
}
