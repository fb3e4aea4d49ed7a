// The words CUDA adds to C++: every way of writing a kernel, a launch and a variable of the device
// that the course or a textbook uses. Runs on a GPU and on the stand-in; both must say the same.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpu.hpp"
#include "on_device.cuh"

namespace {

std::vector<int> counting(std::size_t size, int first = 0) {
    std::vector<int> values(size);
    std::iota(values.begin(), values.end(), first);
    return values;
}

// ---- Kernels, written in every order of words ---------------------------------------------------

__global__ void declared_first(int* out, int value = 7);

__global__ void calls_a_later_kernel_by_name(int* out) {
    out[threadIdx.x] = 1;
}

__global__ static void static_after(int* out) {
    out[threadIdx.x] = 2;
}
static __global__ void static_before(int* out) {
    out[threadIdx.x] = 3;
}
void __global__ type_first(int* out) {
    out[threadIdx.x] = 4;
}
extern "C" __global__ void with_c_linkage(int* out) {
    out[threadIdx.x] = 5;
}
__global__ void with_newlines(int* out  // a comment, with a ( and a {
                              )
// another }
{
    out[threadIdx.x] = '}' - '{' + 6;  // 8
}

__global__ void declared_first(int* out, int value) {
    out[threadIdx.x] = value;
}

// nvcc leaves assert() in a kernel unless an option removes it; so does a Release build of the
// course.
TEST(Kernels, KeepTheirAssertions) {
#ifdef NDEBUG
    FAIL() << "NDEBUG is defined where kernels are compiled";
#endif
}

TEST(Kernels, AreWrittenInAnyOrderOfWords) {
    DeviceVector<int> out(3);
    const auto all = [&out](int expected) { EXPECT_EQ(out.to_host(), std::vector<int>(3, expected)); };
    calls_a_later_kernel_by_name<<<1, 3>>>(out.data());
    all(1);
    static_after<<<1, 3>>>(out.data());
    all(2);
    static_before<<<1, 3>>>(out.data());
    all(3);
    type_first<<<1, 3>>>(out.data());
    all(4);
    with_c_linkage<<<1, 3>>>(out.data());
    all(5);
    declared_first<<<1, 3>>>(out.data());
    all(7);
    with_newlines<<<1, 3>>>(out.data());
    all(8);
    declared_first<<<1, 3>>>(out.data(), 9);
    all(9);
}

namespace outer::inner {
__global__ void kernel(int* out) {
    *out = 11;
}
}  // namespace outer::inner
namespace other {
__global__ void kernel(int* out) {
    *out = 12;
}
}  // namespace other

__global__ void overloaded(int* out, int) {
    *out = 1;
}
__global__ void overloaded(int* out, float) {
    *out = 2;
}
__global__ void overloaded(int* out, int, int) {
    *out = 3;
}
__global__ void without_parameters() {}
__global__ void unnamed_parameters(int* out, int, float*, const double, int* __restrict__) {
    *out = 4;
}

TEST(Kernels, AreFoundByNamespaceAndOverload) {
    DeviceVector<int> out(1);
    outer::inner::kernel<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host()[0], 11);
    other::kernel<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host()[0], 12);
    {
        using namespace outer;
        inner::kernel<<<1, 1>>>(out.data());
        EXPECT_EQ(out.to_host()[0], 11);
    }
    overloaded<<<1, 1>>>(out.data(), 1);
    EXPECT_EQ(out.to_host()[0], 1);
    overloaded<<<1, 1>>>(out.data(), 1.0f);
    EXPECT_EQ(out.to_host()[0], 2);
    overloaded<<<1, 1>>>(out.data(), 1, 1);
    EXPECT_EQ(out.to_host()[0], 3);
    without_parameters<<<1, 1>>>();
    unnamed_parameters<<<1, 1>>>(out.data(), 1, nullptr, 2.0, nullptr);
    EXPECT_EQ(out.to_host()[0], 4);
}

// ---- Templates ----------------------------------------------------------------------------------

template <class T>
struct Box {
    T value;
};

template <class T, int kCount = 4>
__global__ void fill(T* out, T value) {
    for (int i = 0; i < kCount; ++i)
        out[i] = value;
}
template __global__ void fill<short, 2>(short*, short);
template <>
__global__ void fill<int, 3>(int* out, int value) {
    for (int i = 0; i < 3; ++i)
        out[i] = -value;
}

template <class T>
__global__ void unbox(const Box<T>* boxes, T* out) {
    out[threadIdx.x] = boxes[threadIdx.x].value;
}

enum class Direction { up, down };
template <Direction kDirection, bool kTwice, auto kStep>
__global__ void step(int* out) {
    int change = kDirection == Direction::up ? static_cast<int>(kStep) : -static_cast<int>(kStep);
    if constexpr (kTwice) change *= 2;
    *out += change;
}

template <class... Values>
__global__ void sum_of_pack(int* out, Values... values) {
    *out = (static_cast<int>(values) + ... + 0);
}
template <int... kValues>
__global__ void sum_of_numbers(int* out) {
    *out = (kValues + ...);
}

template <template <class> class Wrapper, class T>
__global__ void wrap(Wrapper<T>* out, T value) {
    out->value = value;
}

TEST(Templates, AreInstantiatedByLaunches) {
    DeviceVector<int> out(4);
    fill<<<1, 1>>>(out.data(), 5);  // deduced, with the default count
    EXPECT_EQ(out.to_host(), (std::vector<int>{5, 5, 5, 5}));
    fill<int><<<1, 1>>>(out.data(), 6);
    EXPECT_EQ(out.to_host(), (std::vector<int>{6, 6, 6, 6}));
    fill<int, 3><<<1, 1>>>(out.data(), 7);  // the specialisation
    EXPECT_EQ(out.to_host(), (std::vector<int>{-7, -7, -7, 6}));
    fill<int, (8 >> 2)><<<1, 1>>>(out.data(), 8);
    EXPECT_EQ(out.to_host(), (std::vector<int>{8, 8, -7, 6}));

    DeviceVector<short> shorts(2);
    fill<short, 2><<<1, 1>>>(shorts.data(), static_cast<short>(9));
    EXPECT_EQ(shorts.to_host(), (std::vector<short>{9, 9}));
}

TEST(Templates, NestTheirBracketsBesideALaunch) {
    DeviceVector<Box<Box<int>>> boxes(std::vector<Box<Box<int>>>{{{3}}, {{4}}});
    DeviceVector<Box<int>> inner(2);
    unbox<Box<int>><<<1, 2>>>(boxes.data(), inner.data());
    DeviceVector<int> out(2);
    unbox<int><<<1, 2>>>(inner.data(), out.data());
    EXPECT_EQ(out.to_host(), (std::vector<int>{3, 4}));
    DeviceVector<Box<Box<Box<int>>>> deep(std::vector<Box<Box<Box<int>>>>{{{{5}}}});
    DeviceVector<Box<Box<int>>> less_deep(1);
    unbox<Box<Box<int>>><<<1, 1>>>(deep.data(), less_deep.data());
    EXPECT_EQ(less_deep.to_host()[0].value.value, 5);
}

TEST(Templates, TakeNumbersPacksAndTemplates) {
    DeviceVector<int> out(1);
    step<Direction::up, false, 5u><<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host()[0], 5);
    step<Direction::down, true, 'A'><<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host()[0], 5 - 2 * 'A');
    sum_of_pack<<<1, 1>>>(out.data(), 1, 2.5f, 3u, short{4}, 5.5);
    EXPECT_EQ(out.to_host()[0], 15);
    sum_of_pack<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host()[0], 0);
    sum_of_numbers<1, 20, 300><<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host()[0], 321);
    DeviceVector<Box<int>> box(1);
    wrap<<<1, 1>>>(box.data(), 17);
    EXPECT_EQ(box.to_host()[0].value, 17);
}

// ---- Parameters ---------------------------------------------------------------------------------

struct Inner {
    short s;
    double d;
};
struct Parameters {
    char c;
    Inner inner;
    int numbers[5];
    int3 triple;
    __host__ __device__ int total() const {
        int sum = c + inner.s + static_cast<int>(inner.d) + triple.x + triple.y + triple.z;
        for (const int n : numbers)
            sum += n;
        return sum;
    }
};
static_assert(std::is_trivially_copyable_v<Parameters>);

__global__ void take_structure(int* out, Parameters parameters) {
    *out = parameters.total();
}
__global__ void take_const_structure(int* out, const Parameters parameters, std::size_t add) {
    *out = parameters.total() + static_cast<int>(add);
}

TEST(Parameters, AreStructures) {
    const Parameters parameters{1, {2, 3.5}, {4, 5, 6, 7, 8}, make_int3(9, 10, 11)};
    DeviceVector<int> out(1);
    take_structure<<<1, 1>>>(out.data(), parameters);
    EXPECT_EQ(out.to_host()[0], 66);
    take_const_structure<<<1, 1>>>(out.data(), parameters, 1000);
    EXPECT_EQ(out.to_host()[0], 1066);
    take_structure<<<1, 1>>>(out.data(), {1, {1, 1.0}, {1, 1, 1, 1, 1}, {1, 1, 1}});
    EXPECT_EQ(out.to_host()[0], 11);
}

__global__ void change_parameters(int* out, int n, int* cursor, Parameters parameters) {
    cursor += threadIdx.x;
    n += static_cast<int>(threadIdx.x);
    parameters.numbers[0] += n;
    __syncthreads();  // all threads have changed their own by now
    ++n;
    *cursor = n;
    out[threadIdx.x] = parameters.numbers[0];
}

TEST(Parameters, ChangedByAThreadStayItsOwn) {
    constexpr unsigned kThreads = 100;
    DeviceVector<int> out(kThreads);
    DeviceVector<int> through_cursor(kThreads);
    Parameters parameters{};
    parameters.numbers[0] = 1000;
    change_parameters<<<1, kThreads>>>(out.data(), 10, through_cursor.data(), parameters);
    EXPECT_EQ(through_cursor.to_host(), counting(kThreads, 11));
    EXPECT_EQ(out.to_host(), counting(kThreads, 1010));
}

using Operation = int (*)(int);
__device__ int twice(int x) {
    return 2 * x;
}
__device__ int square(int x) {
    return x * x;
}
__device__ Operation operations[] = {twice, square};

__global__ void apply_operation(int* out, Operation operation) {
    out[threadIdx.x] = operation(out[threadIdx.x]);
}
__global__ void apply_raw_operation(int* out, int (*operation)(int)) {
    out[threadIdx.x] = operation(out[threadIdx.x]);
}

TEST(Parameters, ArePointersToDeviceFunctions) {
    Operation host_operations[2];
    ASSERT_EQ(cudaMemcpyFromSymbol(host_operations, operations, sizeof host_operations), cudaSuccess);
    DeviceVector<int> out(counting(4));
    apply_operation<<<1, 4>>>(out.data(), host_operations[1]);
    EXPECT_EQ(out.to_host(), (std::vector<int>{0, 1, 4, 9}));
    apply_raw_operation<<<1, 4>>>(out.data(), host_operations[0]);
    EXPECT_EQ(out.to_host(), (std::vector<int>{0, 2, 8, 18}));
}

template <class Function>
__global__ void for_each(int* out, Function function) {
    out[threadIdx.x] = function(out[threadIdx.x]);
}
struct AddMember {
    int summand;
    __device__ int operator()(int x) const { return x + summand; }
};

// nvcc allows no extended lambda in the private member functions that TEST makes.
void add_with_lambda(int* out, int summand) {
    for_each<<<1, 4>>>(out, [=] __device__(int x) { return x + summand; });
}
void add_with_generic_lambda(int* out, int summand) {
    for_each<<<1, 4>>>(out, [summand] __device__(auto x) { return x + summand; });
}
void add_with_two_sided_lambda(int* out, int summand) {
    const auto add = [=] __host__ __device__(int x) { return x + summand; };
    EXPECT_EQ(add(1), summand + 1);
    for_each<<<1, 4>>>(out, add);
}

TEST(Parameters, AreLambdasAndFunctionObjects) {
    DeviceVector<int> out(counting(4));
    add_with_lambda(out.data(), 10);
    EXPECT_EQ(out.to_host(), counting(4, 10));
    add_with_generic_lambda(out.data(), 10);
    EXPECT_EQ(out.to_host(), counting(4, 20));
    add_with_two_sided_lambda(out.data(), 10);
    EXPECT_EQ(out.to_host(), counting(4, 30));
    for_each<<<1, 4>>>(out.data(), AddMember{10});
    EXPECT_EQ(out.to_host(), counting(4, 40));
}

// ---- Launches -----------------------------------------------------------------------------------

__global__ void add_one(int* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
__global__ void add_two(int* out) {
    out[blockIdx.x * blockDim.x + threadIdx.x] += 2;
}

#define LAUNCH(kernel, threads, ...) kernel<<<1, (threads)>>>(__VA_ARGS__)

template <void (*kKernel)(int*)>
void launch_template_argument(int* out) {
    kKernel<<<1, 4>>>(out);
}
template <auto kKernel, class... Arguments>
void launch_any(Arguments... arguments) {
    kKernel<<<1, 4>>>(arguments...);
}
template <class Kernel, class... Arguments>
void launch_parameter(Kernel kernel, Arguments&&... arguments) {
    kernel<<<1, 4>>>(std::forward<Arguments>(arguments)...);
}
void launch_and_return(int* out) {
    return add_one<<<1, 4>>>(out);
}

template <class T>
unsigned count_of(const std::vector<T>& values) {
    return static_cast<unsigned>(values.size());
}

struct Entry {
    const char* name;
    void (*kernel)(int*);
};

TEST(Launches, TakeKernelsByPointer) {
    DeviceVector<int> out(4);
    void (*kernel)(int*) = add_one;
    kernel<<<1, 4>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 1));
    kernel = &add_two;
    (*kernel)<<<1, 4>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 3));
    const Entry table[] = {{"one", add_one}, {"two", add_two}};
    for (const Entry& entry : table)
        entry.kernel<<<1, 4>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 6));
    void (*instance)(int*, int) = fill<int, 4>;
    instance<<<1, 1>>>(out.data(), 50);
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 50));
}

TEST(Launches, TakeKernelsAsTemplateAndFunctionArguments) {
    DeviceVector<int> out(4);
    launch_template_argument<add_one>(out.data());
    launch_any<add_two>(out.data());
    launch_parameter(add_one, out.data());
    launch_parameter(fill<int, 1>, out.data(), 9);
    EXPECT_EQ(out.to_host(), (std::vector<int>{9, 4, 4, 4}));
}

TEST(Launches, StandInEveryKindOfStatement) {
    DeviceVector<int> out(4);
    LAUNCH(add_one, 4, out.data());
    if (out.data() != nullptr) add_one<<<1, 4>>>(out.data());
    if (out.data() == nullptr)
        add_two<<<1, 4>>>(out.data());
    else
        add_one<<<1, 4>>>(out.data());
    for (int i = 0; i < 3; ++i)
        add_one<<<1, 4>>>(out.data());
    for (int i = 0; i < 2; add_one<<<1, 4>>>(out.data()), ++i) {
    }
    launch_and_return(out.data());
    [&] { add_one<<<1, 4>>>(out.data()); }();
    switch (1) {
        case 1:
            add_one<<<1, 4>>>(out.data());
            break;
        default:
            add_two<<<1, 4>>>(out.data());
    }
    add_one<<<1, 4>>>(out.data()), add_one<<<1, 4>>>(out.data());
    do
        add_one<<<1, 4>>>(out.data());
    while (false);
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 14));
}

TEST(Launches, TakeTheirConfigurationInEveryForm) {
    const std::vector<int> zeros(12);
    DeviceVector<int> out(zeros);
    const dim3 grid(2, 1, 1);
    add_one<<<grid, dim3(6)>>>(out.data());
    add_one<<<dim3{3, 1, 1}, dim3{4}>>>(out.data());
    add_one<<<dim3(3), 4, 0>>>(out.data());
    add_one<<<1, count_of<int>(zeros)>>>(out.data());
    // It would take these apart:
    // clang-format off
    add_one<<<(zeros.size() + 3) / 4, zeros.size() > 8 ? 4 : 2>>>(out.data());
    add_one<<<12 >> 2, 1 << 2>>>(out.data());
    // clang-format on
    add_one<<<make_uint3(3, 1, 1), uint3{4, 1, 1}>>>(out.data());
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    add_one<<<  // blocks
        3,
        /* threads */ 4,
        sizeof(float) * 8,  // dynamic shared memory
        stream              //
        >>>(out.data());
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(out.to_host(), std::vector<int>(12, 8));
}

// Launches a kernel and returns `value`.
template <class T>
T after_a_launch(int* out, T value) {
    add_one<<<1, 4>>>(out);
    return value;
}

TEST(Launches, MayLaunchInTheirConfiguration) {
    DeviceVector<int> out(4);
    DeviceVector<int> inner(4);
    const auto grid = [&] { return after_a_launch(inner.data(), 1); };
    add_two<<<grid(), 4>>>(out.data());
    add_two<<<1, after_a_launch(inner.data(), dim3(4))>>>(out.data());
    add_two<<<1, 4, after_a_launch(inner.data(), sizeof(int))>>>(out.data());
    add_two<<<1, 4, 0, after_a_launch(inner.data(), cudaStream_t{})>>>(out.data());
    fill<int, 4><<<grid(), after_a_launch(inner.data(), 1)>>>(out.data(), 9);
    void (*const kernel)(int*) = add_two;
    (*kernel)<<<after_a_launch(inner.data(), grid()), 4>>>(out.data());
    EXPECT_EQ(inner.to_host(), std::vector<int>(4, 8));
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 11));
}

TEST(Launches, MayLaunchInALambdaOfTheirConfiguration) {
    DeviceVector<int> out(4);
    DeviceVector<int> inner(4);
    add_two<<<[&] {
        add_one<<<1, [&] { return after_a_launch(inner.data(), 4); }()>>>(inner.data());
        add_two<<<1, 4>>>(out.data());
        return 1;
    }(),
              4>>>(out.data());
    EXPECT_EQ(inner.to_host(), std::vector<int>(4, 2));
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 4));
}

TEST(Launches, MayLaunchInTheirArguments) {
    DeviceVector<int> out(4);
    DeviceVector<int> inner(4);
    add_two<<<1, 4>>>(after_a_launch(inner.data(), out.data()));
    fill<int, 4><<<1, after_a_launch(inner.data(), 1)>>>(after_a_launch(inner.data(), out.data()),
                                                         after_a_launch(inner.data(), 9));
    EXPECT_EQ(inner.to_host(), std::vector<int>(4, 4));
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 9));
}

TEST(Launches, EvaluateTheConfigurationBeforeTheArguments) {
    DeviceVector<int> out(4);
    int value = 0;
    const auto block = [&] {
        value = 7;
        return 1;
    };
    fill<int, 4><<<1, block()>>>(out.data(), value);
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 7));
}

TEST(Launches, ThatAnExceptionEndsLeaveNothingBehind) {
    DeviceVector<int> out(4);
    const auto throws = []() -> int { throw 1; };
    EXPECT_ANY_THROW((add_one<<<throws(), 4>>>(out.data())));
    add_two<<<1, 4>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 2));
}

TEST(Launches, AreOneExpressionEach) {
    DeviceVector<int> out(4);
    const Entry table[] = {{"one", add_one}, {"two", add_two}};
    for (const bool first : {true, false})
        first ? add_one<<<1, 4>>>(out.data()) : add_two<<<1, 4>>>(out.data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "only one of the two is launched";
    static_cast<void>(static_cast<bool>(table[0].name) && (table[1].kernel<<<1, 4>>>(out.data()), true));
    (void)add_one<<<1, 4>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(4, 6));
}

TEST(Launches, OfNothingWrongLeaveNoError) {
    without_parameters<<<1, 1024>>>();
    without_parameters<<<dim3(1, 65535, 1), dim3(1, 1, 1)>>>();
    without_parameters<<<1, dim3(2, 8, 64)>>>();
    without_parameters<<<1, 1, 48 * 1024>>>();
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// ---- Where a thread is --------------------------------------------------------------------------

struct Place {
    uint3 thread, block;
    uint3 block_size, grid_size;
    int warp_size;
};

__global__ void tell_place(Place* places) {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    places[block * threads + thread] = {threadIdx, blockIdx, blockDim, gridDim, warpSize};
}

void expect_triple(uint3 got, uint3 expected) {
    EXPECT_EQ(got.x, expected.x);
    EXPECT_EQ(got.y, expected.y);
    EXPECT_EQ(got.z, expected.z);
}

class Shapes : public testing::TestWithParam<std::pair<dim3, dim3>> {};

TEST_P(Shapes, EveryThreadKnowsItsPlace) {
    const auto [grid, block] = GetParam();
    const unsigned count = grid.x * grid.y * grid.z * block.x * block.y * block.z;
    DeviceVector<Place> places(count);
    tell_place<<<grid, block>>>(places.data());
    const std::vector<Place> got = places.to_host();
    unsigned i = 0;
    for (unsigned bz = 0; bz < grid.z; ++bz) {
        for (unsigned by = 0; by < grid.y; ++by) {
            for (unsigned bx = 0; bx < grid.x; ++bx) {
                for (unsigned tz = 0; tz < block.z; ++tz) {
                    for (unsigned ty = 0; ty < block.y; ++ty) {
                        for (unsigned tx = 0; tx < block.x; ++tx) {
                            const Place& place = got[i++];
                            expect_triple(place.thread, make_uint3(tx, ty, tz));
                            expect_triple(place.block, make_uint3(bx, by, bz));
                            expect_triple(place.block_size, block);
                            expect_triple(place.grid_size, grid);
                            ASSERT_EQ(place.warp_size, 32);
                            ASSERT_FALSE(HasFailure()) << "thread " << i - 1;
                        }
                    }
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(InOneTwoAndThreeDimensions, Shapes,
                         testing::Values(std::pair(dim3(1), dim3(1)), std::pair(dim3(5), dim3(33)),
                                         std::pair(dim3(3, 4), dim3(7, 5)),
                                         std::pair(dim3(2, 3, 4), dim3(3, 2, 5)),
                                         std::pair(dim3(1, 1, 7), dim3(1, 1, 64)),
                                         std::pair(dim3(1, 9, 1), dim3(1, 1024, 1))));

// ---- Constant and device variables --------------------------------------------------------------

__constant__ int constant_number = 5;
__constant__ int constant_array[8];
__constant__ Inner constant_structure;
__device__ int device_number = 6;
__device__ float device_array[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ int device_counter;
static __device__ const int kDeviceTable[3] = {10, 20, 30};
constexpr int kHostAndDevice = 40;

__global__ void read_variables(int* out) {
    out[0] = constant_number;
    out[1] = device_number;
    out[2] = static_cast<int>(device_array[1][2]);
    out[3] = kDeviceTable[threadIdx.x + 2] + kHostAndDevice;
    out[4] = constant_structure.s + static_cast<int>(constant_structure.d);
    for (int i = 0; i < 8; ++i)
        out[5 + i] = constant_array[i];
}

TEST(Variables, OfTheDeviceAreCopiedToAndFrom) {
    DeviceVector<int> out(13);
    const int numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const Inner inner{100, 1000.0};
    ASSERT_EQ(cudaMemcpyToSymbol(constant_array, numbers, sizeof numbers), cudaSuccess);
    ASSERT_EQ(cudaMemcpyToSymbol(constant_structure, &inner, sizeof inner), cudaSuccess);
    read_variables<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host(), (std::vector<int>{5, 6, 6, 70, 1100, 1, 2, 3, 4, 5, 6, 7, 8}));

    const int replaced[2] = {-3, -4};
    ASSERT_EQ(cudaMemcpyToSymbol(constant_array, replaced, sizeof replaced, 2 * sizeof(int)), cudaSuccess);
    const int nine = 9;
    ASSERT_EQ(cudaMemcpyToSymbol(constant_number, &nine, sizeof nine, 0, cudaMemcpyHostToDevice),
              cudaSuccess);
    read_variables<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host(), (std::vector<int>{9, 6, 6, 70, 1100, 1, 2, -3, -4, 5, 6, 7, 8}));

    int back[3];
    ASSERT_EQ(cudaMemcpyFromSymbol(back, constant_array, sizeof back, sizeof(int)), cudaSuccess);
    EXPECT_EQ(std::vector<int>(back, back + 3), (std::vector<int>{2, -3, -4}));
    const int five = 5;
    ASSERT_EQ(cudaMemcpyToSymbol(constant_number, &five, sizeof five), cudaSuccess);
}

__global__ void count_threads() {
    atomicAdd(&device_counter, 1);
}

TEST(Variables, OfTheDeviceKeepTheirValueBetweenLaunches) {
    const int zero = 0;
    ASSERT_EQ(cudaMemcpyToSymbol(device_counter, &zero, sizeof zero), cudaSuccess);
    for (int i = 0; i < 3; ++i)
        count_threads<<<5, 40>>>();
    int count = 0;
    ASSERT_EQ(cudaMemcpyFromSymbol(&count, device_counter, sizeof count), cudaSuccess);
    EXPECT_EQ(count, 600);
}

TEST(Variables, OfTheDeviceHaveAnAddressAndASize) {
    std::size_t size = 0;
    ASSERT_EQ(cudaGetSymbolSize(&size, constant_array), cudaSuccess);
    EXPECT_EQ(size, 8 * sizeof(int));
    ASSERT_EQ(cudaGetSymbolSize(&size, device_array), cudaSuccess);
    EXPECT_EQ(size, 6 * sizeof(float));
    void* address = nullptr;
    ASSERT_EQ(cudaGetSymbolAddress(&address, device_counter), cudaSuccess);
    const int value = 77;
    ASSERT_EQ(cudaMemcpy(address, &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
    int count = 0;
    ASSERT_EQ(cudaMemcpyFromSymbol(&count, device_counter, sizeof count), cudaSuccess);
    EXPECT_EQ(count, 77);
}

// ---- Shared memory ------------------------------------------------------------------------------

constexpr int kTile = 8;

struct Accumulator {
    int count;
    float sum;
};
struct alignas(16) Quad {
    float x, y, z, w;
};

__global__ void shared_of_the_type_of_an_expression(int* out, decltype(sizeof 1) scale) {
    __shared__ decltype(out[0] + 1.0) sums[32];
    __shared__ decltype(threadIdx.x) total;
    extern __shared__ decltype(out[0] + 1) dynamic[];
    sums[threadIdx.x] = threadIdx.x + 0.5;
    dynamic[threadIdx.x] = 2;
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int i = 0; i < 32; ++i)
            sum += sums[i] * dynamic[i];
        total = static_cast<unsigned>(sum);
    }
    __syncthreads();
    out[threadIdx.x] = static_cast<int>(total * scale);
}
TEST(SharedMemory, MayHaveTheTypeOfAnExpression) {
    DeviceVector<int> out(32);
    shared_of_the_type_of_an_expression<<<1, 32, 32 * sizeof(int)>>>(out.data(), 3);
    EXPECT_EQ(out.to_host(), std::vector<int>(32, 3 * (31 * 32 + 32)));
}

__device__ int sum_in_device_function(int value) {
    __shared__ int partial[64];
    partial[threadIdx.x] = value;
    __syncthreads();
    int sum = 0;
    for (unsigned i = 0; i < blockDim.x; ++i)
        sum += partial[i];
    __syncthreads();
    return sum;
}

template <class T, int kCount>
__device__ T rotate_in_template(T value) {
    __shared__ T ring[kCount];
    ring[threadIdx.x % kCount] = value;
    __syncthreads();
    const T rotated = ring[(threadIdx.x + 1) % kCount];
    __syncthreads();
    return rotated;
}

__global__ void static_shared_forms(int* out) {
    __shared__ int scalar;
    __shared__ int line[64], reversed[64], *pointer;
    __shared__ float tile[kTile][kTile + 1];
    __shared__ short cube[2][4][kTile];
    __shared__ Accumulator accumulator;
    __shared__ union {
        int as_int;
        float as_float;
    } pun;
    __shared__ struct { int first, second[2]; } unnamed;
    __shared__ __align__(16) unsigned char raw[64];
    __shared__ alignas(32) unsigned char aligned_raw[32];
    alignas(64) __shared__ float aligned_first[4];
    static __shared__ unsigned with_static;
    volatile __shared__ int volatile_first;
    __shared__ volatile int volatile_second[2];
    __shared__ Quad quads[2];
    __shared__ unsigned long long wide;
    const unsigned t = threadIdx.x;
    line[t] = static_cast<int>(t);
    tile[t / kTile][t % kTile] = static_cast<float>(t);
    cube[t / 32][t / kTile % 4][t % kTile] = static_cast<short>(t);
    if (t == 0) {
        scalar = 1;
        pointer = line + 3;
        accumulator = {2, 3.0f};
        pun.as_float = 1.0f;
        unnamed.first = 4;
        unnamed.second[1] = 5;
        reinterpret_cast<float4*>(raw)[3] = make_float4(1, 2, 3, 4);
        *reinterpret_cast<double*>(aligned_raw) = 6.0;
        aligned_first[3] = 7;
        with_static = 8;
        volatile_first = 9;
        volatile_second[1] = 10;
        quads[1] = {1, 2, 3, 11};
        wide = 1ull << 40;
    }
    __syncthreads();
    reversed[t] = line[63 - t];
    __syncthreads();
    int* mine = out + 20 * t;
    mine[0] = scalar;
    mine[1] = reversed[t];
    mine[2] = *pointer;
    mine[3] = static_cast<int>(tile[t % kTile][t / kTile]);
    mine[4] = cube[t % 2][t / 16][t / 2 % kTile];
    mine[5] = accumulator.count + static_cast<int>(accumulator.sum);
    mine[6] = pun.as_int;
    mine[7] = unnamed.first + unnamed.second[1];
    mine[8] = static_cast<int>(reinterpret_cast<float*>(raw)[15]);
    mine[9] = static_cast<int>(*reinterpret_cast<double*>(aligned_raw));
    mine[10] = static_cast<int>(aligned_first[3]);
    mine[11] = static_cast<int>(with_static);
    mine[12] = volatile_first + volatile_second[1];
    mine[13] = static_cast<int>(quads[1].w);
    mine[14] = static_cast<int>(wide >> 38);
    mine[15] = sum_in_device_function(static_cast<int>(t));
    mine[16] = rotate_in_template<int, 64>(static_cast<int>(t));
    mine[17] = static_cast<int>(rotate_in_template<double, 16>(static_cast<double>(t % 16)));
    mine[18] = reinterpret_cast<std::uintptr_t>(aligned_first) % 64 == 0 &&
               reinterpret_cast<std::uintptr_t>(aligned_raw) % 32 == 0 &&
               reinterpret_cast<std::uintptr_t>(raw) % 16 == 0 &&
               reinterpret_cast<std::uintptr_t>(quads) % 16 == 0;
    if (t < 2) {  // declared in an inner scope, reached by some threads only
        __shared__ int for_few[2];
        for_few[t] = static_cast<int>(t) + 90;
        mine[19] = for_few[t];
    } else {
        mine[19] = 0;
    }
}

TEST(SharedMemory, IsDeclaredInManyForms) {
    DeviceVector<int> out(20 * 64);
    static_shared_forms<<<3, 64>>>(out.data());
    const std::vector<int> got = out.to_host();
    int one_as_int = 0;
    const float one = 1.0f;
    std::memcpy(&one_as_int, &one, sizeof one);
    for (int t = 0; t < 64; ++t) {
        const std::vector<int> expected = {1,
                                           63 - t,
                                           3,
                                           t % kTile * kTile + t / kTile,
                                           t % 2 * 32 + t / 16 * kTile + t / 2 % kTile,
                                           5,
                                           one_as_int,
                                           9,
                                           4,
                                           6,
                                           7,
                                           8,
                                           19,
                                           11,
                                           4,
                                           63 * 64 / 2,
                                           (t + 1) % 64,
                                           (t + 1) % 16,
                                           1,
                                           t < 2 ? t + 90 : 0};
        EXPECT_EQ(std::vector<int>(got.begin() + 20 * t, got.begin() + 20 * (t + 1)), expected)
            << "thread " << t;
    }
}

extern __shared__ float at_file_scope[];

__device__ float neighbour_through_file_scope(float value) {
    at_file_scope[threadIdx.x] = value;
    __syncthreads();
    return at_file_scope[(threadIdx.x + 1) % blockDim.x];
}
__global__ void use_file_scope(float* out) {
    out[threadIdx.x] = neighbour_through_file_scope(static_cast<float>(threadIdx.x));
}
__global__ void use_file_scope_itself(float* out) {
    at_file_scope[threadIdx.x] = static_cast<float>(2 * threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = at_file_scope[blockDim.x - 1 - threadIdx.x];
}
__global__ void use_bytes(int* out) {
    extern __shared__ __align__(16) unsigned char bytes[];
    int* ints = reinterpret_cast<int*>(bytes);
    float4* vectors = reinterpret_cast<float4*>(bytes + blockDim.x * sizeof(int));
    ints[threadIdx.x] = static_cast<int>(threadIdx.x);
    vectors[threadIdx.x] = make_float4(0, 0, 0, static_cast<float>(threadIdx.x));
    __syncthreads();
    const unsigned other = blockDim.x - 1 - threadIdx.x;
    out[threadIdx.x] = ints[other] + static_cast<int>(vectors[other].w);
}
__global__ void use_rows(int* out) {
    extern __shared__ int rows[][4];
    if (threadIdx.x < 4) {
        for (int row = 0; row < 3; ++row)
            rows[row][threadIdx.x] = row * 10 + static_cast<int>(threadIdx.x);
    }
    __syncthreads();
    out[threadIdx.x] = rows[threadIdx.x / 4][threadIdx.x % 4];
}
template <class T>
struct DynamicShared {
    __device__ T* get() const {
        extern __shared__ __align__(16) unsigned char storage[];
        return reinterpret_cast<T*>(storage);
    }
};
template <class T>
__global__ void use_typed(T* out) {
    T* const values = DynamicShared<T>{}.get();
    values[threadIdx.x] = static_cast<T>(threadIdx.x) + T(0.5);
    __syncthreads();
    out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}
__global__ void use_both(int* out) {
    __shared__ int fixed[32];
    extern __shared__ volatile int chosen[];
    fixed[threadIdx.x] = 1000;
    chosen[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = fixed[31 - threadIdx.x] + chosen[31 - threadIdx.x];
}

TEST(SharedMemory, DynamicIsDeclaredInManyForms) {
    DeviceVector<float> reals(40);
    use_file_scope<<<1, 40, 40 * sizeof(float)>>>(reals.data());
    for (int t = 0; t < 40; ++t)
        EXPECT_EQ(reals.to_host()[t], static_cast<float>((t + 1) % 40));
    use_file_scope_itself<<<1, 40, 40 * sizeof(float)>>>(reals.data());
    for (int t = 0; t < 40; ++t)
        EXPECT_EQ(reals.to_host()[t], static_cast<float>(2 * (39 - t)));

    DeviceVector<int> out(32);
    use_bytes<<<1, 32, 32 * (sizeof(int) + sizeof(float4))>>>(out.data());
    for (int t = 0; t < 32; ++t)
        EXPECT_EQ(out.to_host()[t], 2 * (31 - t));
    use_rows<<<1, 12, 12 * sizeof(int)>>>(out.data());
    for (int t = 0; t < 12; ++t)
        EXPECT_EQ(out.to_host()[t], t / 4 * 10 + t % 4);
    use_both<<<1, 32, 32 * sizeof(int)>>>(out.data());
    for (int t = 0; t < 32; ++t)
        EXPECT_EQ(out.to_host()[t], 1000 + 31 - t);

    use_typed<<<1, 40, 40 * sizeof(float)>>>(reals.data());
    for (int t = 0; t < 40; ++t)
        EXPECT_EQ(reals.to_host()[t], static_cast<float>(39 - t) + 0.5f);
    DeviceVector<double> doubles(7);
    use_typed<<<1, 7, 7 * sizeof(double)>>>(doubles.data());
    for (int t = 0; t < 7; ++t)
        EXPECT_EQ(doubles.to_host()[t], 6 - t + 0.5);
}

__global__ void own_shared_memory(int* wrong) {
    __shared__ unsigned owner;
    if (threadIdx.x == 0) owner = blockIdx.x;
    __syncthreads();
    if (owner != blockIdx.x) atomicAdd(wrong, 1);
}

TEST(SharedMemory, BelongsToOneBlock) {
    DeviceVector<int> wrong(1);
    own_shared_memory<<<1000, 33>>>(wrong.data());
    EXPECT_EQ(wrong.to_host()[0], 0);
}

__global__ void read_far_shared(int* out) {
    extern __shared__ int large[];
    large[50000 / 4 + threadIdx.x] = 3;
    out[threadIdx.x] = large[50000 / 4 + threadIdx.x];
}

TEST(SharedMemory, AboveTheUsualLimitIsAskedFor) {
    DeviceVector<int> out(32);
    ASSERT_EQ(cudaFuncSetAttribute(read_far_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024),
              cudaSuccess);
    read_far_shared<<<1, 32, 64 * 1024>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>(32, 3));
}

// ---- Attributes of functions --------------------------------------------------------------------

__global__ void __launch_bounds__(64) bounds_after_type(int* out) {
    *out = 1;
}
__launch_bounds__(64, 2) __global__ void bounds_first(int* out) {
    *out = 2;
}
__global__ __launch_bounds__(8 * kTile) void bounds_before_type(int* out) {
    *out = 3;
}
__global__ void __launch_bounds__(128, 1, 2) three_bounds(int* out) {
    *out = 4;
}
template <int kThreads>
__global__ void __launch_bounds__(kThreads, kThreads > 32 ? 2 : 1) bounds_of_template(int* out) {
    *out = kThreads;
}
static __global__ void __launch_bounds__(32) declared_with_bounds(int* out);
static __global__ void declared_with_bounds(int* out) {
    *out = 6;
}

template <class Kernel>
int most_threads(Kernel* kernel) {
    cudaFuncAttributes attributes{};
    EXPECT_EQ(cudaFuncGetAttributes(&attributes, kernel), cudaSuccess);
    return attributes.maxThreadsPerBlock;
}

TEST(LaunchBounds, AreAcceptedInEveryPlace) {
    DeviceVector<int> out(1);
    const auto gives = [&out](int expected) { EXPECT_EQ(out.to_host()[0], expected); };
    bounds_after_type<<<1, 64>>>(out.data());
    gives(1);
    bounds_first<<<1, 64>>>(out.data());
    gives(2);
    bounds_before_type<<<1, 64>>>(out.data());
    gives(3);
    three_bounds<<<1, 128>>>(out.data());
    gives(4);
    bounds_of_template<96><<<1, 96>>>(out.data());
    gives(96);
    declared_with_bounds<<<1, 32>>>(out.data());
    gives(6);
}

TEST(LaunchBounds, LimitTheBlock) {
    EXPECT_EQ(most_threads(bounds_after_type), 64);
    EXPECT_EQ(most_threads(bounds_first), 64);
    EXPECT_EQ(most_threads(bounds_before_type), 64);
    EXPECT_EQ(most_threads(three_bounds), 128);
    EXPECT_EQ(most_threads(bounds_of_template<96>), 96);
    EXPECT_EQ(most_threads(add_one), 1024);
}

__forceinline__ __device__ int forced_inline(int x) {
    return x + 1;
}
__device__ __noinline__ int never_inline(int x) {
    return x + 2;
}
__noinline__ __device__ int never_inline_either(int x) {
    return x + 3;
}
__host__ __device__ constexpr int on_both_sides(int x) {
    return x + 4;
}
__device__ __forceinline__ static int static_inline(int x) {
    return x + 5;
}
__global__ void use_restrict(int* __restrict__ out, const int* __restrict__ in) {
    const int* __restrict__ const local = in + threadIdx.x;
    out[threadIdx.x] = static_inline(on_both_sides(never_inline_either(never_inline(forced_inline(*local)))));
}

TEST(FunctionAttributes, ChangeNoResult) {
    DeviceVector<int> in(counting(8));
    DeviceVector<int> out(8);
    use_restrict<<<1, 8>>>(out.data(), in.data());
    EXPECT_EQ(out.to_host(), counting(8, on_both_sides(11)));
}

// ---- Pragmas ------------------------------------------------------------------------------------

template <int kFactor>
__global__ void unroll_in_every_form(int* out) {
    constexpr int kFour = 4;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < kFactor; ++i)
        sum += i;
#pragma unroll 2
    for (int i = 0; i < 7; ++i)
        sum += i;
#pragma unroll(3)
    for (int i = 0; i < 7; ++i)
        sum += i;
#pragma unroll 1
    for (int i = 0; i < 7; ++i) {
#pragma unroll kFactor
        for (int k = 0; k < i; ++k)
            sum += k;
    }
#pragma unroll kFour
    for (int i = 0; i < 9; ++i)
        sum += i;
#pragma unroll(kFour * 2)
    for (int i = 0; i < 9; ++i)
        sum += i;
    _Pragma("unroll") for (int i = 0; i < 5; ++i) sum += i;
    int left = 3;
#pragma unroll
    while (left > 0)
        sum += left--;
    *out = sum + kFour;
}

TEST(Pragmas, OfUnrollingChangeNoResult) {
    DeviceVector<int> out(1);
    unroll_in_every_form<5><<<1, 1>>>(out.data());
    // sums of 0..n-1 for 5, 7, 7, the triangle sums below 7, 9, 9, 5, then 3 + 2 + 1
    EXPECT_EQ(out.to_host()[0], 10 + 21 + 21 + 35 + 36 + 36 + 10 + 6 + 4);
}

// ---- C++ in kernels -----------------------------------------------------------------------------

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int s) : side(s) {}
    __device__ int area() const override { return side * side; }
};
struct Rectangle : Shape {
    int width, height;
    __device__ Rectangle(int w, int h) : width(w), height(h) {}
    __device__ int area() const override { return width * height; }
};

__device__ int factorial(int n) {
    return n < 2 ? 1 : n * factorial(n - 1);
}
__host__ __device__ constexpr int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void use_the_language(int* out, int n) {
    Shape* shapes[] = {new Square(n), new Rectangle(n, n + 1)};
    out[0] = shapes[0]->area();
    out[1] = shapes[1]->area();
    for (Shape* shape : shapes)
        delete shape;
    out[2] = factorial(n);
    constexpr int kFibonacci = fibonacci(10);
    out[3] = kFibonacci;
    const auto [x, y] = Box<int2>{make_int2(n, n + 1)}.value;
    out[4] = 10 * x + y;
    const auto local = [&](auto... values) { return (values + ... + n); };
    out[5] = local(1, 2, 3);
    int local_array[4] = {};
    local_array[n % 4] = 7;
    out[6] = local_array[0] + local_array[1];
    switch (n) {
        case 5:
            out[7] = 50;
            break;
        default:
            out[7] = -1;
            break;
    }
    int i = 0;
again:
    if (++i < n) goto again;
    out[8] = i;
    struct Local {
        int value;
        __device__ int negated() const { return -value; }
    };
    out[9] = Local{n}.negated();
    int* heap = static_cast<int*>(malloc(4 * sizeof(int)));
    memset(heap, 0, 4 * sizeof(int));
    heap[3] = n;
    int copied[4];
    memcpy(copied, heap, sizeof copied);
    free(heap);
    out[10] = copied[0] + copied[3];
    do {
        --i;
    } while (i > 2);
    out[11] = i;
    assert(n == 5);
    if (n == 5) return;
    out[0] = -1;
}

TEST(CxxInKernels, WorksAsOnTheHost) {
    DeviceVector<int> out(12);
    use_the_language<<<1, 1>>>(out.data(), 5);
    EXPECT_EQ(out.to_host(), (std::vector<int>{25, 30, 120, 55, 56, 11, 7, 50, 5, -5, 5, 2}));
}

// ---- Output and time ----------------------------------------------------------------------------

__global__ void print_something(const char* word) {
    printf("block %d thread %u: %s %5.2f %llx %c%%\n", static_cast<int>(blockIdx.x), threadIdx.x, word,
           3.14159, 0xabcdef0123ull, 'x');
}
__global__ void copy_text(char* to) {
    const char text[] = "word";
    for (unsigned i = 0; i < sizeof text; ++i)
        to[i] = text[i];
}

TEST(Printf, WritesToStandardOutput) {
    DeviceVector<char> word(8);
    copy_text<<<1, 1>>>(word.data());
    testing::internal::CaptureStdout();
    print_something<<<2, 2>>>(word.data());
    const cudaError_t error = cudaDeviceSynchronize();
    const std::string output = testing::internal::GetCapturedStdout();
    ASSERT_EQ(error, cudaSuccess);
    for (const char* place :
         {"block 0 thread 0", "block 0 thread 1", "block 1 thread 0", "block 1 thread 1"}) {
        EXPECT_NE(output.find(std::string(place) + ": word  3.14 abcdef0123 x%\n"), std::string::npos)
            << output;
    }
}

__global__ void read_clock(long long* elapsed) {
    const long long start = clock64();
    long long now = start;
    long long previous = start;
    bool monotone = true;
    for (int i = 0; i < 1000; ++i) {
        now = clock64();
        monotone = monotone && now >= previous;
        previous = now;
    }
    elapsed[threadIdx.x] = monotone ? now - start : -1;
}

TEST(Clock, GoesForward) {
    DeviceVector<long long> elapsed(32);
    read_clock<<<1, 32>>>(elapsed.data());
    for (const long long t : elapsed.to_host())
        EXPECT_GT(t, 0);
}

// An empty loop body may stand in a constexpr function; the translator's hint must not take that
// away.
constexpr int bits_below(int n) {
    int bits = 0;
    for (; (1 << bits) < n; ++bits)
        ;
    return bits;
}
static_assert(bits_below(1000) == 10);

}  // namespace
