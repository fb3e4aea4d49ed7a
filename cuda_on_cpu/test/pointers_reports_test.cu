// What the stand-in tells of addresses of the host that stand for the device's: names of __device__
// variables and functions in host code. And of an index past the end of such a variable.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "on_device.cuh"
#include "reports.cuh"

namespace {

__device__ int counters[32];
__device__ int rows[4][4];
__device__ int single;
__constant__ float weights[4];
struct Point {
    int x, y;
};
__device__ Point point;
__managed__ int managed[2];

__global__ void add_one(int* values) {
    values[threadIdx.x] += 1;
}
__global__ void scale(const float* factors, int* out) {
    *out = static_cast<int>(factors[1]);
}
__global__ void move(Point* p) {
    p->x = 1;
}
__global__ void read_all(int* out) {
    *out = counters[1] + rows[1][1] + single + static_cast<int>(weights[1]) + point.y;
}

// ---- Variables ----------------------------------------------------------------------------------

std::string refused_copy(cudaError_t expected, const std::function<cudaError_t()>& copy) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(copy(), expected);
    cudaGetLastError();
    return testing::internal::GetCapturedStderr();
}

TEST(NamesOfVariables, AreNoPointersForCopies) {
    int host[16] = {};
    float numbers[4];
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidValue,
                     [&] { return cudaMemcpy(counters, host, sizeof host, cudaMemcpyHostToDevice); }),
        {"cudaMemcpy: destination = 0x", "the host's address of the __device__ variable 'counters'",
         "cudaMemcpyToSymbol()"}));
    EXPECT_TRUE(mentions(refused_copy(cudaErrorInvalidValue, [&] { return cudaMemset(rows, 0, 16); }),
                         {"cudaMemset", "variable 'rows'"}));
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidValue,
                     [&] { return cudaMemcpy(&single, host, sizeof single, cudaMemcpyHostToDevice); }),
        {"variable 'single'"}));
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidValue,
                     [&] { return cudaMemcpyAsync(numbers, weights + 1, 4, cudaMemcpyDeviceToHost); }),
        {"cudaMemcpyAsync: source = ", "variable 'weights'"}));
    EXPECT_TRUE(
        mentions(refused_copy(cudaErrorInvalidValue, [&] { return cudaMemset(&rows[1], 0, sizeof rows[1]); }),
                 {"variable 'rows'"}));
}

TEST(NamesOfVariables, AreNoArgumentsOfKernels) {
    DeviceVector<int> out(1);
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { add_one<<<1, 32>>>(counters); }),
                         {"kernel add_one: argument 1 is the host's address of the __device__ variable "
                          "'counters'",
                          "cudaGetSymbolAddress()"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [&] { scale<<<1, 1>>>(weights, out.data()); }),
                         {"argument 1 ", "'weights'"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { move<<<1, 1>>>(&point); }), {"'point'"}));
    EXPECT_TRUE(
        mentions(report_of(cudaErrorIllegalAddress, [] { add_one<<<1, 4>>>((int*)rows); }), {"'rows'"}));
}

// A symbol is the variable, not a pointer.
TEST(NamesOfVariables, AreSymbolsWithoutTheirAddress) {
    const int host[4] = {};
    int back[4];
    void* address = nullptr;
    std::size_t size = 0;
    int* const pointer = back;
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidSymbol, [&] { return cudaMemcpyToSymbol(&single, host, 4); }),
        {"cudaMemcpyToSymbol: the symbol is not a __device__ variable; expected the variable by its name"}));
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidSymbol, [&] { return cudaMemcpyToSymbol(&rows[1], host, 8); }), {}));
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidSymbol, [&] { return cudaMemcpyFromSymbol(back, &point.y, 4); }),
        {"cudaMemcpyFromSymbol"}));
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidSymbol, [&] { return cudaMemcpyToSymbol(pointer, host, 4); }), {}));
    EXPECT_TRUE(mentions(
        refused_copy(cudaErrorInvalidSymbol, [&] { return cudaGetSymbolAddress(&address, &single); }),
        {"cudaGetSymbolAddress"}));
    EXPECT_TRUE(
        mentions(refused_copy(cudaErrorInvalidSymbol, [&] { return cudaGetSymbolSize(&size, counters + 1); }),
                 {"cudaGetSymbolSize"}));
}

TEST(NamesOfVariables, AreThoseOfSymbolsThatAreTooSmall) {
    const int host[64] = {};
    int back[64];
    EXPECT_TRUE(
        mentions(refused_copy(cudaErrorInvalidValue, [&] { return cudaMemcpyToSymbol(rows, host, 68); }),
                 {"cudaMemcpyToSymbol: bytes 0 to 68 of the symbol 'rows', which has 64 bytes"}));
    EXPECT_TRUE(
        mentions(refused_copy(cudaErrorInvalidValue, [&] { return cudaMemcpyFromSymbol(back, point, 8, 4); }),
                 {"cudaMemcpyFromSymbol: bytes 4 to 12 of the symbol 'point', which has 8 bytes"}));
    EXPECT_TRUE(
        mentions(refused_copy(cudaErrorInvalidValue, [&] { return cudaMemcpyToSymbol(single, host, 8); }),
                 {"bytes 0 to 8 of the symbol, which has 4 bytes"}));
}

template <class T>
cudaError_t upload(T& symbol, const T& value) {
    return cudaMemcpyToSymbol(symbol, &value, sizeof value);
}

TEST(NamesOfVariables, AreRightWhereSymbolsAreExpected) {
    const std::vector<int> ones(32, 1);
    const int square[4][4] = {{}, {0, 20}};
    const float numbers[4] = {0, 300};
    EXPECT_EQ(cudaMemcpyToSymbol(counters, ones.data(), 32 * sizeof(int)), cudaSuccess);
    EXPECT_EQ(cudaMemcpyToSymbol(rows, square, sizeof square), cudaSuccess);
    EXPECT_EQ(cudaMemcpyToSymbol(weights, numbers, sizeof numbers), cudaSuccess);
    EXPECT_EQ(upload(single, 4000), cudaSuccess);
    EXPECT_EQ(upload(point, Point{0, 50000}), cudaSuccess);
    void* address = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(cudaGetSymbolAddress(&address, counters), cudaSuccess);
    EXPECT_EQ(cudaGetSymbolSize(&size, rows), cudaSuccess);
    EXPECT_EQ(size, sizeof rows);
    add_one<<<1, 32>>>(static_cast<int*>(address));
    add_one<<<1, 2>>>(managed);
    DeviceVector<int> out(1);
    read_all<<<1, 1>>>(out.data());
    EXPECT_EQ(out.to_host(), std::vector<int>{54322});
    int first = 0;
    EXPECT_EQ(cudaMemcpy(&first, address, sizeof first, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(first, 2);
}

// ---- Functions ----------------------------------------------------------------------------------

typedef float (*Operation)(float);
__device__ float twice(float x) {
    return 2 * x;
}
__device__ float half_of(float x) {
    return x / 2;
}
__host__ __device__ float same(float x) {
    return x;
}
__device__ Operation of_the_device = twice;
__device__ Operation all_of_the_device[] = {half_of, twice};

constexpr int kCallLine = __LINE__ + 2;
__global__ void apply(float* data, Operation operation) {
    data[threadIdx.x] = operation(data[threadIdx.x]);
}
struct Operations {
    Operation list[2];
};
__global__ void apply_both(float* data, Operations operations) {
    for (const Operation& each : operations.list)
        data[threadIdx.x] = each(data[threadIdx.x]);
}
template <Operation operation, int more>
__global__ void apply_fixed(float* data) {
    data[threadIdx.x] = operation(data[threadIdx.x]) + more;
}

TEST(NamesOfFunctions, AreOnTheHostNoneThatAKernelCanCall) {
    DeviceVector<float> data(std::vector<float>(32, 3));
    Operation operation = twice;
    EXPECT_TRUE(
        mentions(report_of(cudaErrorIllegalAddress, [&] { apply<<<1, 32>>>(data.data(), operation); }),
                 {"illegal access to 0x", "the host's address of the __device__ function 'twice'",
                  at_line(kCallLine)}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [&] { apply<<<1, 1>>>(data.data(), &half_of); }),
                         {"'half_of'", at_line(kCallLine)}));
    const Operations both = {{half_of, twice}};
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [&] { apply_both<<<2, 1>>>(data.data(), both); }),
                         {"'half_of'"}));
    EXPECT_EQ(data.to_host(), std::vector<float>(32, 3));
}

TEST(NamesOfFunctions, AreRightInDeviceCodeAndTemplates) {
    DeviceVector<float> data(std::vector<float>(32, 3));
    Operation operation = nullptr;
    EXPECT_EQ(cudaMemcpyFromSymbol(&operation, of_the_device, sizeof operation), cudaSuccess);
    apply<<<1, 32>>>(data.data(), operation);
    Operation all[2];
    EXPECT_EQ(cudaMemcpyFromSymbol(all, all_of_the_device, sizeof all), cudaSuccess);
    apply_both<<<1, 32>>>(data.data(), {{all[0], all[1]}});
    apply_fixed<twice, 1><<<1, 32>>>(data.data());
    apply_fixed<&half_of, 2><<<1, 32>>>(data.data());
    EXPECT_EQ(data.to_host(), std::vector<float>(32, 8.5f));
    Operation of_the_host = same;
    EXPECT_EQ(of_the_host(2), 2);
}

// ---- An index past the end of a variable --------------------------------------------------------

__global__ void count_at(int i) {
    atomicAdd(&counters[i], 1);
}
__global__ void set_element(int row, int column) {
    rows[row][column] = 7;
}
__global__ void set_weight(int i) {
    const_cast<float*>(weights)[i] = 1;
}
__global__ void set_point(int i) {
    (&point.x)[i] = 1;
}
__global__ void read_behind(float* out, int i) {
    out[0] = weights[i];
}

TEST(BoundsOfVariables, AWriteOutsideIsReportedWhenTheKernelEnds) {
    const std::string outside = "wrote outside a __device__ variable: at ";
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { count_at<<<1, 1>>>(32); }),
                         {"kernel count_at: ", outside, "index 32 of 'counters', which has 32 elements"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { count_at<<<1, 1>>>(-1); }),
                         {outside, "index -1 of 'counters'"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { set_element<<<1, 1>>>(4, 1); }),
                         {outside, "index 17 of 'rows', which has 16 elements"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { set_weight<<<1, 1>>>(4); }),
                         {outside, "index 4 of 'weights'"}));
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { set_point<<<1, 1>>>(2); }),
                         {outside, "byte 8 of 'point', which has 8 bytes"}));
}

TEST(BoundsOfVariables, AReadOutsideGivesNaN) {
    DeviceVector<float> out(1);
    read_behind<<<1, 1>>>(out.data(), 3);
    EXPECT_FALSE(std::isnan(out.to_host()[0]));
    read_behind<<<1, 1>>>(out.data(), 4);
    EXPECT_TRUE(std::isnan(out.to_host()[0]));
}

TEST(BoundsOfVariables, AWriteToTheFirstAndLastElementIsRight) {
    testing::internal::CaptureStderr();
    count_at<<<1, 1>>>(0);
    count_at<<<1, 1>>>(31);
    set_element<<<1, 1>>>(3, 3);
    set_weight<<<1, 1>>>(3);
    set_point<<<1, 1>>>(1);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// ---- The heap of kernels ------------------------------------------------------------------------

__global__ void fill_heap(int bytes) {
    int* const memory = static_cast<int*>(malloc(static_cast<std::size_t>(bytes)));
    memory[0] = static_cast<int>(threadIdx.x);
}

TEST(NullPointers, OfAFullHeapNameItsSize) {
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_TRUE(mentions(report_of(cudaErrorIllegalAddress, [] { fill_heap<<<2, 256>>>(65536); }),
                         {"a null pointer: the heap of 8388608 bytes", "cudaLimitMallocHeapSize"}));
}

}  // namespace
