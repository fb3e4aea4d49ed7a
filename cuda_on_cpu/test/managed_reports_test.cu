// What the stand-in tells of managed memory that the host accesses before it has waited for a
// kernel.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include "reports.cuh"

namespace {

__global__ void set_one(int* x, int value) {
    x[threadIdx.x] = value;
}
__global__ void set_double(double* x) {
    *x = 2;
}
__global__ void set_bytes(unsigned char* x) {
    x[2 * threadIdx.x] = 1;
}
__global__ void copy_first(const int* from, int* to) {
    *to = *from + 1;
}
__global__ void set_flag(volatile int* flag) {
    *flag = 1;
}

template <class T>
class Managed {
  public:
    explicit Managed(std::size_t count) {
        EXPECT_EQ(cudaMallocManaged(&data_, count * sizeof(T)), cudaSuccess);
        for (std::size_t i = 0; i < count; ++i)
            data_[i] = T{};
    }
    ~Managed() { cudaFree(data_); }
    Managed(const Managed&) = delete;
    Managed& operator=(const Managed&) = delete;
    T* get() const { return data_; }

  private:
    T* data_ = nullptr;
};

// The report of an access, after which the program goes on.
std::string told_of(const std::function<void()>& program) {
    testing::internal::CaptureStderr();
    program();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return testing::internal::GetCapturedStderr();
}

// Before the first call of the runtime.
[[maybe_unused]] const int watched = setenv("CUDA_ON_CPU_MANAGED", "watched", 1);

int seen;

TEST(ManagedMemory, IsReadBeforeTheWait) {
    const Managed<int> x(1);
    int line = 0;
    const std::string read = told_of([&] {
        set_one<<<1, 1>>>(x.get(), 42);
        line = __LINE__ + 1;
        seen = *x.get();
    });
    EXPECT_TRUE(mentions(read, {"code of the host reads managed memory that kernel set_one has changed",
                                at_line(line), "cudaDeviceSynchronize()"}));
    EXPECT_EQ(seen, 42);
    EXPECT_EQ(std::count(read.begin(), read.end(), '\n'), 1) << read;
}

TEST(ManagedMemory, IsWrittenBeforeTheWait) {
    const Managed<int> x(1000);
    EXPECT_TRUE(mentions(told_of([&] {
                             set_one<<<1, 32>>>(x.get(), 256);
                             x.get()[31] = 1;
                         }),
                         {"code of the host writes managed memory that kernel set_one has changed"}));
    EXPECT_EQ(x.get()[31], 1);
    EXPECT_EQ(x.get()[30], 256);
}

TEST(ManagedMemory, IsReadInTheExpressionThatWaits) {
    const Managed<double> x(3);
    const auto difference = [](double value, cudaError_t error) { return error == cudaSuccess ? value : -1; };
    EXPECT_TRUE(mentions(told_of([&] {
                             set_double<<<1, 1>>>(x.get());
                             const double value = *x.get();
                             EXPECT_EQ(difference(value, cudaDeviceSynchronize()), 2);
                         }),
                         {"reads managed memory that kernel set_double has changed"}));
}

TEST(ManagedMemory, IsReadByTheNextLaunch) {
    const Managed<int> x(1), y(1);
    EXPECT_TRUE(mentions(told_of([&] {
                             set_one<<<1, 1>>>(x.get(), 7);
                             copy_first<<<1, static_cast<unsigned>(*x.get())>>>(x.get(), y.get());
                         }),
                         {"that kernel set_one has changed"}));
}

TEST(ManagedMemory, IsReadBeforeTheWaitForItsStream) {
    const Managed<int> x(1);
    cudaStream_t stream;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    EXPECT_TRUE(mentions(told_of([&] {
                             set_one<<<1, 1, 0, stream>>>(x.get(), 9);
                             seen = *x.get();
                             cudaStreamSynchronize(stream);
                         }),
                         {"that kernel set_one has changed"}));
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// Every wait that a program may use.
TEST(ManagedMemory, IsReadBehindAWait) {
    const Managed<int> x(1), other(1);
    int* device = nullptr;
    int host = 0;
    cudaStream_t stream;
    cudaEvent_t event;
    ASSERT_EQ(cudaMalloc(&device, sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    const std::function<void()> waits[] = {
        [] { cudaDeviceSynchronize(); },
        [&] { cudaStreamSynchronize(stream); },
        [&] {
            cudaEventRecord(event, stream);
            cudaEventSynchronize(event);
        },
        [&] { EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess); },
        [&] {
            cudaEventRecord(event, stream);
            EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
        },
        [&] { cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost); },
        [&] { cudaMemcpy(device, &host, sizeof host, cudaMemcpyHostToDevice); },
        [&] { cudaMemcpy(&host, x.get(), sizeof host, cudaMemcpyDefault); },
        [] {
            int* freed = nullptr;
            cudaMalloc(&freed, 4);
            cudaFree(freed);
        }};
    int value = 0;
    for (const auto& wait : waits) {
        EXPECT_EQ(told_of([&] {
                      set_one<<<1, 1, 0, stream>>>(x.get(), ++value);
                      copy_first<<<1, 1, 0, stream>>>(x.get(), other.get());
                      wait();
                      EXPECT_EQ(*x.get(), value);
                      EXPECT_EQ(*other.get(), value + 1);
                  }),
                  "");
    }
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(ManagedMemory, ThatTheKernelHasNotChangedIsTheHosts) {
    const Managed<int> x(4096);
    const Managed<int> input(1), output(1);
    const Managed<unsigned char> bytes(64);
    EXPECT_EQ(told_of([&] {
                  set_one<<<1, 32>>>(x.get(), 3);
                  x.get()[32] = 4;  // beside what the kernel writes
                  seen = x.get()[4095];
                  cudaDeviceSynchronize();
                  copy_first<<<1, 1>>>(input.get(), output.get());
                  seen = *input.get();
                  set_bytes<<<1, 8>>>(bytes.get());
                  seen = bytes.get()[1];
                  bytes.get()[3] = 5;
              }),
              "");
    EXPECT_EQ(x.get()[31] + x.get()[32], 7);
    EXPECT_EQ(bytes.get()[2] + bytes.get()[3], 6);
}

TEST(ManagedMemory, IsReadByFunctionsOfTheStream) {
    const Managed<int> x(1);
    EXPECT_EQ(told_of([&] {
                  set_one<<<1, 1>>>(x.get(), 11);
                  cudaLaunchHostFunc(
                      nullptr, [](void* data) { seen = *static_cast<int*>(data); }, x.get());
              }),
              "");
    EXPECT_EQ(seen, 11);
}

// The last test, because afterwards nothing is reported any more.
TEST(ManagedMemoryAsAFlag, IsNoMistake) {
    const Managed<int> flag(1);
    EXPECT_EQ(told_of([&] {
                  set_flag<<<1, 1>>>(flag.get());
                  seen = *static_cast<volatile int*>(flag.get());
              }),
              "");
}

}  // namespace
