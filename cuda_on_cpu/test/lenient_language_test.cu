// What nvcc compiles although the host compiler alone would refuse it: shared variables outside
// functions in each spelling, member templates without `template`, members named like their type.
#include <gtest/gtest.h>

#include <vector>

#include "on_device.cuh"

// nvcc refuses it in a namespace without a name.
template <class T>
extern __shared__ T dynamic_memory[];
template <typename T>
extern __shared__ __align__(16) T aligned_memory[];

namespace {

constexpr int kThreads = 64;

// ---- Shared variables outside functions ---------------------------------------------------------

template <class T>
__global__ void reverse(T* data) {
    T* tile = dynamic_memory<T>;
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = dynamic_memory<T>[blockDim.x - 1 - threadIdx.x];
}
template <class T>
__global__ void rotate(T* data) {
    auto& tile = aligned_memory<T>;
    *(aligned_memory<T> + threadIdx.x) = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = tile[(threadIdx.x + 1) % blockDim.x];
}
template <class T>
__global__ void count_bytes(unsigned* out) {
    reinterpret_cast<unsigned*>(aligned_memory<T>)[threadIdx.x] = sizeof(aligned_memory<T>[0]);
    out[threadIdx.x] = reinterpret_cast<unsigned*>(&dynamic_memory<T>[0])[threadIdx.x];
}

template <class T>
void test_variable_templates() {
    std::vector<T> values(kThreads);
    for (int i = 0; i < kThreads; ++i)
        values[i] = static_cast<T>(i);
    DeviceVector<T> data(values);
    reverse<<<1, kThreads, kThreads * sizeof(T)>>>(data.data());
    std::vector<T> got = data.to_host();
    for (int i = 0; i < kThreads; ++i)
        EXPECT_EQ(got[i], static_cast<T>(kThreads - 1 - i));
    rotate<<<1, kThreads, kThreads * sizeof(T)>>>(data.data());
    got = data.to_host();
    for (int i = 0; i < kThreads; ++i)
        EXPECT_EQ(got[i], static_cast<T>((2 * kThreads - 2 - i) % kThreads));
}

TEST(SharedOutsideFunctions, MayBeAVariableTemplate) {
    test_variable_templates<double>();
    test_variable_templates<char>();
    test_variable_templates<int>();
    DeviceVector<unsigned> sizes(4);
    count_bytes<double2><<<1, 4, 64>>>(sizes.data());
    EXPECT_EQ(sizes.to_host(), std::vector<unsigned>(4, 16));
}

__device__ __shared__ unsigned words[kThreads];
static __device__ __shared__ int first_of_two[2], second_of_two;
__shared__ __device__ float of_the_file[kThreads];
namespace inner {
namespace {
__shared__ int nested[kThreads];
}
__device__ int neighbour() {
    return nested[(threadIdx.x + 1) % blockDim.x];
}
}  // namespace inner

__device__ void fill_words(unsigned value) {
    words[threadIdx.x] = value;
}
struct User {
    float factor;
    __device__ float get() const { return factor * of_the_file[threadIdx.x]; }
};
__global__ void use_all(unsigned* out) {
    fill_words(threadIdx.x + blockIdx.x);
    of_the_file[threadIdx.x] = static_cast<float>(threadIdx.x);
    inner::nested[threadIdx.x] = static_cast<int>(threadIdx.x * 3);
    if (threadIdx.x == 0) first_of_two[1] = 100, second_of_two = 1000;
    __syncthreads();
    const auto sum = [&] { return first_of_two[1] + second_of_two + inner::neighbour(); };
    out[blockIdx.x * blockDim.x + threadIdx.x] = words[kThreads - 1 - threadIdx.x] +
                                                 static_cast<unsigned>(User{2}.get()) +
                                                 static_cast<unsigned>(sum());
}

TEST(SharedOutsideFunctions, IsTheBlocksOwnInEachSpelling) {
    constexpr unsigned kBlocks = 3;
    DeviceVector<unsigned> out(kBlocks * kThreads);
    use_all<<<kBlocks, kThreads>>>(out.data());
    const std::vector<unsigned> got = out.to_host();
    for (unsigned block = 0; block < kBlocks; ++block) {
        for (unsigned t = 0; t < kThreads; ++t) {
            EXPECT_EQ(got[block * kThreads + t],
                      kThreads - 1 - t + block + 2 * t + 1100 + (t + 1) % kThreads * 3);
        }
    }
}

// ---- Member templates without `template` --------------------------------------------------------

template <class T>
struct Cast {
    template <int N>
    __device__ static void cast(T* to, const T* from) {
        for (int i = 0; i < N; ++i)
            to[i] = 2 * from[i];
    }
    template <int N>
    __device__ T scaled(T x) const {
        return N * x;
    }
    static constexpr int limit = 7;
};
template <class T, int N>
__device__ void by_class(T* to, const T* from) {
    Cast<T>::cast<N>(to, from);
}
template <class C, class T>
__device__ void by_parameter(T* to, const T* from) {
    C::cast<2>(to, from);
}
template <class T>
__device__ T by_object(T x) {
    Cast<T> c;
    return c.scaled<3>(x);
}
template <class C, class T>
__device__ T by_pointer(const C* c, T x) {
    return c->scaled<4>(x);
}
template <class T>
__device__ int compares(int n) {  // no template: less than
    return Cast<T>::limit < n ? 1 : 0;
}
template <class T>
__global__ void use_casts(T* out) {
    const T from[4] = {0, 1, 2, 3};
    by_class<T, 4>(out, from);
    by_parameter<Cast<T>>(out + 4, from + 2);
    out[6] = by_object(from[1]);
    const Cast<T> c;
    out[7] = by_pointer(&c, from[2]);
    out[8] = static_cast<T>(10 * compares<T>(8) + compares<T>(7));
}

TEST(MemberTemplates, NeedNoKeyword) {
    DeviceVector<float> out(9);
    use_casts<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host(), (std::vector<float>{0, 2, 4, 6, 4, 6, 3, 8, 10}));
}

// ---- Members named like their type --------------------------------------------------------------

template <class A>
struct Config {
    A a;
};
struct Color {
    int red;
};
namespace shapes {
template <class T>
struct Deep {
    T value;
};
struct User {
    using Deep = Deep<float>;
    typedef Color Color;
    Deep deep;
    Color color;
};
}  // namespace shapes
template <class T>
struct Matrix {
    using Config = Config<T>;
    Config config;
    __device__ T get() const { return config.a; }
};
template <class T>
struct Other {
    typedef Config<T> Config;
    Config config;
};
struct Pixel {
    Color Color;
};

__global__ void use_own_types(int* out) {
    Matrix<int> matrix;
    matrix.config.a = 5;
    Other<int> other;
    other.config.a = 60;
    shapes::User user;
    user.deep.value = 700;
    user.color.red = 8000;
    Pixel pixel;
    pixel.Color.red = 90000;
    *out =
        matrix.get() + other.config.a + static_cast<int>(user.deep.value) + user.color.red + pixel.Color.red;
}

TEST(Members, MayHaveTheNameOfTheirType) {
    DeviceVector<int> out(1);
    use_own_types<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>{98765});
}

}  // namespace
