// cuRAND: compares some numbers with those of NVIDIA's library, version 10.4, for the same seeds.
#include <curand.h>
#include <curand_kernel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

template <class State>
__global__ void draw_integers(unsigned long long seed, unsigned long long subsequence,
                              unsigned long long offset, unsigned* output, int count) {
    State state;
    curand_init(seed, subsequence, offset, &state);
    for (int i = 0; i < count; ++i)
        output[i] = curand(&state);
}

template <class State, class Word>
__global__ void draw_from_sobol(const Word* directions, Word* output) {
    State state;
    curand_init(directions, 60, &state);
    output[0] = curand(&state);
    output[1] = curand(&state);
}

__global__ void draw_with_philox(float* output, double* doubles) {
    curandStatePhilox4_32_10_t state;
    curand_init(5, 1, 2, &state);
    const uint4 integers = curand4(&state);
    output[0] = integers.w / 4294967296.f;
    const float4 uniform = curand_uniform4(&state);
    output[1] = uniform.x;
    const float4 normal = curand_normal4(&state);
    output[2] = normal.x;
    output[3] = normal.w;
    const double2 both = curand_uniform2_double(&state);
    doubles[0] = both.x;
    doubles[1] = both.y;
}

// For the default state: sums, and squares of normal numbers.
__global__ void estimate_moments(double* moments, int draws) {
    curandState state;
    curand_init(11, threadIdx.x, 0, &state);
    double sums[4] = {};
    for (int i = 0; i < draws; ++i) {
        const double normal = curand_normal(&state);
        sums[0] += curand_uniform(&state);
        sums[1] += normal;
        sums[2] += normal * normal;
        sums[3] += curand_poisson(&state, threadIdx.x % 2 == 0 ? 4 : 100);
    }
    for (int i = 0; i < 4; ++i)
        moments[4 * threadIdx.x + i] = sums[i] / draws;
}

namespace {

template <class T>
class Device {
  public:
    explicit Device(std::size_t count) : count_(count) { cudaMalloc(&pointer_, count * sizeof(T)); }
    ~Device() { cudaFree(pointer_); }
    Device(const Device&) = delete;
    operator T*() const { return pointer_; }
    std::vector<T> values() const {
        std::vector<T> all(count_);
        EXPECT_EQ(cudaMemcpy(all.data(), pointer_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return all;
    }

  private:
    std::size_t count_;
    T* pointer_ = nullptr;
};

template <class State>
std::vector<unsigned> integers(unsigned long long seed, unsigned long long subsequence,
                               unsigned long long offset) {
    Device<unsigned> output(4);
    draw_integers<State><<<1, 1>>>(seed, subsequence, offset, output, 4);
    return output.values();
}

using Integers = std::vector<unsigned>;

TEST(CurandKernel, IntegersAreThoseOfNvidia) {
    EXPECT_EQ(integers<curandState>(1234, 0, 0), (Integers{0x253d5e15, 0x6f558604, 0xdee6daf2, 0x7485b394}));
    EXPECT_EQ(integers<curandState>(1234, 5, 7), (Integers{0xc7c04273, 0xd8577152, 0x18c2f892, 0x45ebfbe1}));
    EXPECT_EQ(integers<curandStatePhilox4_32_10_t>(1234, 0, 0),
              (Integers{0x2090b348, 0xda7cf0ab, 0x4401906f, 0xcbca470e}));
    EXPECT_EQ(integers<curandStateMRG32k3a_t>(1234, 0, 0),
              (Integers{0xc96891f0, 0x9650c684, 0x0cbc7881, 0x5fa111cd}));
    EXPECT_EQ(integers<curandState>(0x123456789abcdef, 1ull << 40, 12345678901),
              (Integers{0x82a6951b, 0xec3837ff, 0x34d41fce, 0x3052ad9a}));
    EXPECT_EQ(integers<curandStatePhilox4_32_10_t>(0x123456789abcdef, 1ull << 40, 12345678901),
              (Integers{0x29be9c26, 0xac10dd69, 0xb6045e0f, 0x983f156e}));
    EXPECT_EQ(integers<curandStateMRG32k3a_t>(0x123456789abcdef, 1ull << 40, 12345678901),
              (Integers{0x8578d96e, 0x94bc8567, 0x12073167, 0x39ae5029}));
}

TEST(CurandKernel, PhiloxGivesFourNumbersAtOnce) {
    Device<float> output(4);
    Device<double> doubles(2);
    draw_with_philox<<<1, 1>>>(output, doubles);
    const std::vector<float> x = output.values();
    EXPECT_FLOAT_EQ(x[0], 0xf0505561p0f / 4294967296.f);
    EXPECT_EQ(x[1], 0x1.73a0a2p-1f);
    EXPECT_NEAR(x[2], -0.1438234, 1e-5);
    EXPECT_NEAR(x[3], -0.9125907, 1e-5);
    EXPECT_EQ(doubles.values(), (std::vector<double>{0x1.c8f994cd9aa4fp-2, 0x1.48ed2ea57b916p-3}));
}

template <class State, class Word, class Vectors>
std::vector<Word> sobol(const Vectors* vectors) {
    Device<Word> directions(8 * sizeof(Word)), output(2);
    cudaMemcpy(directions, vectors[20], sizeof(Vectors), cudaMemcpyHostToDevice);
    draw_from_sobol<State><<<1, 1>>>(static_cast<const Word*>(directions), static_cast<Word*>(output));
    return output.values();
}

TEST(CurandKernel, SobolPointsAreThoseOfNvidia) {
    curandDirectionVectors32_t* vectors32 = nullptr;
    curandDirectionVectors64_t* vectors64 = nullptr;
    ASSERT_EQ(curandGetDirectionVectors32(&vectors32, CURAND_DIRECTION_VECTORS_32_JOEKUO6),
              CURAND_STATUS_SUCCESS);
    ASSERT_EQ(curandGetDirectionVectors64(&vectors64, CURAND_DIRECTION_VECTORS_64_JOEKUO6),
              CURAND_STATUS_SUCCESS);
    EXPECT_EQ((sobol<curandStateSobol32, unsigned>(vectors32))[0], 0xfc000000u);
    EXPECT_EQ((sobol<curandStateSobol64, unsigned long long>(vectors64))[0], 0xfc00000000000000u);
}

TEST(CurandKernel, NumbersHaveTheirMoments) {
    constexpr int kThreads = 64, kDraws = 500;
    Device<double> moments(4 * kThreads);
    estimate_moments<<<1, kThreads>>>(moments, kDraws);
    const std::vector<double> all = moments.values();
    double mean[4] = {}, few = 0;
    for (int thread = 0; thread < kThreads; ++thread) {
        for (int i = 0; i < 4; ++i)
            mean[i] += all[4 * thread + i] / kThreads;
        few += thread % 2 == 0 ? all[4 * thread + 3] * 2 / kThreads : 0;
    }
    EXPECT_NEAR(mean[0], 0.5, 0.01);
    EXPECT_NEAR(mean[1], 0, 0.03);
    EXPECT_NEAR(mean[2], 1, 0.05);
    EXPECT_NEAR(mean[3], 52, 0.3);
    EXPECT_NEAR(few, 4, 0.08);
}

// The numbers at these positions, of `count` numbers of a generator.
Integers generated(curandRngType_t type, std::size_t count, std::vector<std::size_t> positions,
                   unsigned long long offset = 0) {
    curandGenerator_t generator = nullptr;
    EXPECT_EQ(curandCreateGenerator(&generator, type), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetPseudoRandomGeneratorSeed(generator, 1234), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetGeneratorOffset(generator, offset), CURAND_STATUS_SUCCESS);
    Device<unsigned> output(count);
    EXPECT_EQ(curandGenerate(generator, output, count / 2), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandGenerate(generator, output + count / 2, count - count / 2), CURAND_STATUS_SUCCESS);
    curandDestroyGenerator(generator);
    const Integers all = output.values();
    Integers chosen;
    for (const std::size_t position : positions)
        chosen.push_back(all[position]);
    return chosen;
}

TEST(Curand, ArraysHaveTheOrderOfNvidia) {
    EXPECT_EQ(generated(CURAND_RNG_PSEUDO_XORWOW, 300000, {0, 1, 4095, 4096, 150000, 299999}, 0),
              (Integers{0x253d5e15, 0xd1f7605a, 0xe5dcbada, 0x6f558604, 0x69e59ed7, 0x1f47e364}));
    EXPECT_EQ(generated(CURAND_RNG_PSEUDO_XORWOW, 300000, {0, 4095, 299999}, 8193),
              (Integers{0x83030ed9, 0x7485b394, 0x66bee70b}));
    EXPECT_EQ(generated(CURAND_RNG_PSEUDO_PHILOX4_32_10, 300000, {0, 1, 4, 150000, 262144, 299999}, 0),
              (Integers{0x2090b348, 0xda7cf0ab, 0xd115a128, 0xaf53e4bc, 0x9eeede35, 0x6f565f99}));
    EXPECT_EQ(generated(CURAND_RNG_PSEUDO_PHILOX4_32_10, 300000, {0, 1, 299999}, 3),
              (Integers{0xcbca470e, 0xd115a128, 0x5c24684b}));
    EXPECT_EQ(generated(CURAND_RNG_PSEUDO_MRG32K3A, 300000, {0, 1, 81920, 150000, 299999}, 0),
              (Integers{0xc96891f0, 0x26f0d612, 0x9650c684, 0x75016f8c, 0x4deb0d24}));
}

// Elements 0, 1, 5 and 12289 of 20000.
template <class T, class Generate>
void expect_real(curandRngType_t type, Generate generate, std::vector<double> expected) {
    curandGenerator_t generator = nullptr;
    EXPECT_EQ(curandCreateGenerator(&generator, type), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetPseudoRandomGeneratorSeed(generator, 1234), CURAND_STATUS_SUCCESS);
    Device<T> output(20000);
    EXPECT_EQ(generate(generator, output), CURAND_STATUS_SUCCESS);
    curandDestroyGenerator(generator);
    const std::vector<T> all = output.values();
    const std::size_t positions[] = {0, 1, 5, 12289};
    for (int i = 0; i < 4; ++i)
        EXPECT_NEAR(all[positions[i]], expected[i], 1e-5)
            << "generator " << type << ", element " << positions[i];
}

TEST(Curand, RealNumbersAreThoseOfNvidia) {
    expect_real<float>(CURAND_RNG_PSEUDO_XORWOW,
                       [](curandGenerator_t g, float* x) { return curandGenerateUniform(g, x, 20000); },
                       {0.145467639, 0.820180893, 0.868978858, 0.537593544});
    expect_real<double>(
        CURAND_RNG_PSEUDO_XORWOW,
        [](curandGenerator_t g, double* x) { return curandGenerateUniformDouble(g, x, 20000); },
        {0.434898804, 0.92641692, 0.501245671, 0.799349435});
    expect_real<float>(CURAND_RNG_PSEUDO_XORWOW,
                       [](curandGenerator_t g, float* x) { return curandGenerateNormal(g, x, 20000, 1, 2); },
                       {2.56194711, -2.60315633, 1.82807863, 3.79136944});
    expect_real<float>(
        CURAND_RNG_PSEUDO_PHILOX4_32_10,
        [](curandGenerator_t g, float* x) { return curandGenerateLogNormal(g, x, 20000, 1, 0.5); },
        {1.21137345, 5.02576542, 2.35620403, 1.97609258});
    expect_real<double>(
        CURAND_RNG_PSEUDO_PHILOX4_32_10,
        [](curandGenerator_t g, double* x) { return curandGenerateUniformDouble(g, x, 20000); },
        {0.853468995, 0.796055149, 0.0589179929, 0.907552448});
    expect_real<double>(
        CURAND_RNG_PSEUDO_PHILOX4_32_10,
        [](curandGenerator_t g, double* x) { return curandGenerateNormalDouble(g, x, 20000, 0, 1); },
        {-0.539526696, 0.160633346, 1.39931998, 1.08555262});
    expect_real<float>(CURAND_RNG_PSEUDO_MRG32K3A,
                       [](curandGenerator_t g, float* x) { return curandGenerateNormal(g, x, 20000, 0, 1); },
                       {-0.360653788, -0.591281295, 0.133793339, -1.60023749});
    curandGenerator_t generator = nullptr;
    ASSERT_EQ(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetQuasiRandomGeneratorDimensions(generator, 20), CURAND_STATUS_SUCCESS);
    Device<unsigned> points(400);
    EXPECT_EQ(curandGenerate(generator, points, 400), CURAND_STATUS_SUCCESS);
    const Integers all = points.values();
    EXPECT_EQ((Integers{all[19], all[5 * 20 + 13], all[399]}),
              (Integers{0x58000000, 0xf0000000, 0xc8000000}));
    curandDestroyGenerator(generator);
}

TEST(Curand, ArgumentsAreChecked) {
    curandGenerator_t generator = nullptr;
    EXPECT_EQ(curandCreateGenerator(&generator, static_cast<curandRngType_t>(5)), CURAND_STATUS_TYPE_ERROR);
    EXPECT_EQ(curandGenerate(nullptr, nullptr, 1), CURAND_STATUS_NOT_INITIALIZED);
    ASSERT_EQ(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT), CURAND_STATUS_SUCCESS);
    Device<float> output(4);
    EXPECT_EQ(curandGenerateNormal(generator, output, 3, 0, 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    EXPECT_EQ(curandGenerateUniform(generator, output, 0), CURAND_STATUS_SUCCESS);
    EXPECT_EQ(curandSetQuasiRandomGeneratorDimensions(generator, 2), CURAND_STATUS_TYPE_ERROR);
    std::vector<float> host(4);
    testing::internal::CaptureStderr();
    EXPECT_EQ(curandGenerateUniform(generator, host.data(), 4), CURAND_STATUS_SUCCESS);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("the host pointer"), std::string::npos);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    cudaDeviceReset();
    curandDestroyGenerator(generator);
}

}  // namespace
