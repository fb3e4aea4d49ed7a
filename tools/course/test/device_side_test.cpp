#include "device_side.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace course::tool {
namespace {

constexpr const char* kText = R"(#include <vector>
int twice(int x) { return 2 * x; }
__global__ void wrong(int* a) {
    std::vector<int> v(3);  // and a std::map
    cuda::std::atomic<int> fine;
    a[0] = v[0];
}
__device__ void also_wrong() { std::cout << "x"; }
__host__ __device__ void both() { std::string s; }
void host() { std::vector<int> v; }
__global__ void right(int* a) { a[0] = max(a[0], std::min(1, 2)); }
)";

TEST(DeviceSide, TheHostsLibraryIsFoundInKernelsOnly) {
    EXPECT_EQ(host_library_in(kText, {"wrong", "also_wrong", "both", "host", "right"}),
              (std::vector<HostUse>{{4, "std::vector", "__global__"}, {8, "std::cout", "__device__"}}));
    EXPECT_TRUE(host_library_in(kText, {"right"}).empty());
}

TEST(DeviceSide, FunctionsOfAProgramThatRunOnTheDeviceAreFound) {
    const std::vector<std::string> names =
        device_functions_in(std::string(kText) + "__global__ void __launch_bounds__(64) bounded(int n) {}");
    for (const char* name : {"wrong", "also_wrong", "both", "right", "bounded"})
        EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
    for (const char* name : {"host", "twice"})
        EXPECT_EQ(std::ranges::find(names, name), names.end()) << name;
}

TEST(DeviceSide, OfWhatClangSaysOnlyUsesOfTheHostCount) {
    const char* const said = R"(my/a.cuh:5:59: error: no matching function for call to 'twice'
__global__ void k(int* a) { a[0] = twice(a[0]); }
my/a.cuh:4:12: note: candidate function not viable: call to __host__ function from __global__ function
my/a.cuh:6:29: error: no matching function for call to 'twice'
my/a.cuh:4:12: note: candidate function not viable: call to __host__ function from __device__ function
my/a.cuh:7:3: error: no matching function for call to 'atomicAdd'
include/atomics.h:4:12: note: candidate function not viable: no known conversion from 'int' to 'float *'
my/a.cuh:8:3: error: reference to __host__ function 'puts' in __global__ function
other.hpp:9:3: error: reference to __host__ function 'puts' in __global__ function
my/a.cuh:9:1: error: expected ';'
)";
    EXPECT_EQ(host_uses_in(said, "my/a.cuh"),
              (std::vector<HostUse>{
                  {5, "twice", "__global__"}, {6, "twice", "__device__"}, {8, "puts", "__global__"}}));
    const char* const others =
        R"(my/a.cuh:5:39: error: reference to __host__ variable 'threadIdx' in __global__ function
cuda_on_cpu/include/cuda_on_cpu/thread.h:16:37: note: host variable declared here
my/a.cuh:6:17: error: reference to __host__ variable 'offset' in __device__ function
my/a.cuh:4:12: note: host variable declared here
my/a.cuh:7:23: error: cannot use 'throw' in __global__ function
my/a.cuh:8:10: error: cannot use variable-length arrays in __global__ functions
)";
    using Kind = HostUse::Kind;
    EXPECT_EQ(host_uses_in(others, "my/a.cuh"),
              (std::vector<HostUse>{{6, "offset", "__device__", Kind::kVariable},
                                    {7, "throw", "__global__", Kind::kLanguage},
                                    {8, "variable-length arrays", "__global__", Kind::kLanguage}}));
    EXPECT_TRUE(host_uses_in("", "my/a.cuh").empty());
    EXPECT_TRUE(host_uses_in("clang++: not found\n", "my/a.cuh").empty());
}

}  // namespace
}  // namespace course::tool
