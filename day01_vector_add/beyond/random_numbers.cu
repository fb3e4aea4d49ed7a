// Random numbers on the GPU with cuRAND: an array filled by the host API, the same by a kernel with
// the device API, and pi from random points.
//
//   nvcc random_numbers.cu -lcurand -o random_numbers && ./random_numbers 1000000
//   ./course run day01_vector_add/beyond/random_numbers.cu -- 1000000
#include <cuda_runtime.h>
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

// cuRAND has error codes of its own, and no names for them.
#define CURAND_CHECK(call)                                                                        \
    do {                                                                                          \
        const curandStatus_t status = (call);                                                     \
        if (status != CURAND_STATUS_SUCCESS) {                                                    \
            fprintf(stderr, "%s:%d: %s: curandStatus_t %d\n", __FILE__, __LINE__, #call, status); \
            exit(1);                                                                              \
        }                                                                                         \
    } while (false)

constexpr int kBlock = 256;
constexpr unsigned long long kSeed = 42;
constexpr long kFewest = 1000;
constexpr long kMost = 1 << 28;

int blocks_for(long threads) {
    return static_cast<int>((threads + kBlock - 1) / kBlock);
}

// --- The host API: the library launches the kernels ------------------------------------------------

void fill_with_host_api(float* x_d, long n) {
    curandGenerator_t generator;
    CURAND_CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    CURAND_CHECK(curandSetPseudoRandomGeneratorSeed(generator, kSeed));
    CURAND_CHECK(curandGenerateUniform(generator, x_d, n));  // queued in the default stream
    CURAND_CHECK(curandDestroyGenerator(generator));
}

// --- The device API: numbers where they are used ---------------------------------------------------

// Idea: thread i has sequence i of the seed, and draws its first number. Philox computes it from
// (seed, sequence, position), so no thread waits for another one.
__global__ void fill(float* x, long n) {
    const long i = static_cast<long>(blockIdx.x) * kBlock + threadIdx.x;
    if (i >= n) return;
    curandStatePhilox4_32_10_t state;
    curand_init(kSeed, i, 0, &state);
    x[i] = curand_uniform(&state);
}

constexpr int kDraws = 32;  // of four numbers, two points

// How many points in the square from 0 to 1 are at most 1 away from its corner. No number goes
// through memory.
__global__ void count_hits(unsigned long long* hits, long threads) {
    const long thread = static_cast<long>(blockIdx.x) * kBlock + threadIdx.x;
    if (thread >= threads) return;
    curandStatePhilox4_32_10_t state;
    curand_init(kSeed, thread, 0, &state);
    unsigned mine = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
        const float4 u = curand_uniform4(&state);
        mine += fmaf(u.x, u.x, u.y * u.y) <= 1.0f;
        mine += fmaf(u.z, u.z, u.w * u.w) <= 1.0f;
    }
    atomicAdd(hits, static_cast<unsigned long long>(mine));
}

// --- Are they uniform? -----------------------------------------------------------------------------

// Prints what is known of the numbers at x_d. False: they are hardly uniform.
bool check_uniform(const char* name, const float* x_d, long n) {
    constexpr int kBins = 64;
    std::vector<float> x(n);
    CUDA_CHECK(cudaMemcpy(x.data(), x_d, n * sizeof(float), cudaMemcpyDeviceToHost));
    std::vector<long> counts(kBins);
    double sum = 0;
    for (const float value : x) {
        if (!(value > 0 && value <= 1)) {
            fprintf(stderr, "%s: a number is %g; expected more than 0, and at most 1\n", name, value);
            return false;
        }
        sum += value;
        const int bin = static_cast<int>(value * kBins);
        ++counts[bin < kBins ? bin : kBins - 1];  // 1 is possible
    }
    // Chi-squared: 63 on average for 64 bins, with a standard deviation of sqrt(2 * 63) = 11.2.
    const double expected = static_cast<double>(n) / kBins;
    double chi_squared = 0;
    for (const long count : counts)
        chi_squared += (count - expected) * (count - expected) / expected;
    const double mean = sum / n;
    const double standard_error = std::sqrt(1.0 / 12 / n);
    printf("%s: the mean of %ld numbers is %.5f (standard error %.5f), chi-squared %.1f\n", name, n, mean,
           standard_error, chi_squared);
    return std::abs(mean - 0.5) < 5 * standard_error && chi_squared < 63 + 6 * 11.2;
}

// How many of the first 1000 numbers are std::mt19937's, for the same seed.
void compare_mt19937() {
    constexpr int kNumbers = 1000;
    constexpr unsigned kStandardSeed = std::mt19937::default_seed;  // 5489
    unsigned* x_d = nullptr;
    CUDA_CHECK(cudaMalloc(&x_d, kNumbers * sizeof(unsigned)));
    curandGenerator_t generator;
    CURAND_CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_MT19937));
    CURAND_CHECK(curandSetPseudoRandomGeneratorSeed(generator, kStandardSeed));
    CURAND_CHECK(curandGenerate(generator, x_d, kNumbers));
    std::vector<unsigned> x(kNumbers);
    CUDA_CHECK(cudaMemcpy(x.data(), x_d, kNumbers * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CURAND_CHECK(curandDestroyGenerator(generator));
    CUDA_CHECK(cudaFree(x_d));
    std::mt19937 engine(kStandardSeed);
    int equal = 0;
    for (const unsigned value : x)
        equal += value == engine();
    printf("MT19937 of cuRAND, seed %u: %u is first; %d of %d are std::mt19937's\n", kStandardSeed, x[0],
           equal, kNumbers);
}

int main(int argc, char** argv) {
    const char* text = argc > 1 ? argv[1] : "1000000";
    char* end = nullptr;
    const long n = strtol(text, &end, 10);
    if (argc > 2 || end == text || *end != '\0' || n < kFewest || n > kMost) {
        fprintf(stderr, "usage: random_numbers [N]\nN is '%s'; expected a whole number from %ld to %ld\n",
                text, kFewest, kMost);
        return 2;
    }

    float* x_d = nullptr;
    unsigned long long* hits_d = nullptr;
    CUDA_CHECK(cudaMalloc(&x_d, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&hits_d, sizeof *hits_d));

    fill_with_host_api(x_d, n);
    bool right = check_uniform("host API", x_d, n);
    CUDA_CHECK(cudaMemset(x_d, 0, n * sizeof(float)));
    fill<<<blocks_for(n), kBlock>>>(x_d, n);
    CUDA_CHECK(cudaGetLastError());
    right = check_uniform("device API", x_d, n) && right;

    const long threads = (n + 2 * kDraws - 1) / (2 * kDraws);
    const long points = threads * 2 * kDraws;
    CUDA_CHECK(cudaMemset(hits_d, 0, sizeof *hits_d));
    count_hits<<<blocks_for(threads), kBlock>>>(hits_d, threads);
    CUDA_CHECK(cudaGetLastError());
    unsigned long long hits = 0;
    CUDA_CHECK(cudaMemcpy(&hits, hits_d, sizeof hits, cudaMemcpyDeviceToHost));
    const double pi = 4.0 * hits / points;
    const double standard_error = 4 * std::sqrt(M_PI / 4 * (1 - M_PI / 4) / points);
    printf("pi: %llu of %ld points are hits, so it is about %.5f (standard error %.5f)\n", hits, points, pi,
           standard_error);
    right = std::abs(pi - M_PI) < 5 * standard_error && right;

    compare_mt19937();
    CUDA_CHECK(cudaFree(x_d));
    CUDA_CHECK(cudaFree(hits_d));
    if (!right) fprintf(stderr, "the numbers are not uniform\n");
    return right ? 0 : 1;
}
