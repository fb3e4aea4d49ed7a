// The driver API and NVRTC: contexts, memory, modules that are compiled while the program runs, and
// their kernels.
#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <nvrtc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu.hpp"

namespace {

// A handle of the runtime API is one of the driver API.
template <class Driver, class Runtime>
constexpr bool kSame = std::is_same_v<Driver, Runtime>;
static_assert(kSame<CUstream, cudaStream_t> && kSame<CUevent, cudaEvent_t>);
static_assert(kSame<CUgraph, cudaGraph_t> && kSame<CUgraphNode, cudaGraphNode_t> &&
              kSame<CUgraphExec, cudaGraphExec_t> && kSame<CUuserObject, cudaUserObject_t>);
static_assert(kSame<CUfunction, cudaFunction_t> && kSame<CUkernel, cudaKernel_t> &&
              kSame<CUlibrary, cudaLibrary_t>);
static_assert(kSame<CUtexObject, cudaTextureObject_t> && kSame<CUsurfObject, cudaSurfaceObject_t> &&
              kSame<CUuuid, cudaUUID_t>);
// In CUDA's headers these are types of their own; a cast leads from one to the other.
static_assert(std::is_pointer_v<CUmemoryPool> && std::is_pointer_v<CUexternalMemory> &&
              std::is_pointer_v<cudaExternalMemory_t> && std::is_pointer_v<CUexternalSemaphore> &&
              std::is_pointer_v<cudaExternalSemaphore_t> && std::is_pointer_v<CUgraphDeviceNode> &&
              std::is_pointer_v<CUasyncCallbackHandle> && std::is_pointer_v<cudaAsyncCallbackHandle_t> &&
              std::is_pointer_v<CUgreenCtx> && std::is_pointer_v<CUgraphicsResource> &&
              std::is_pointer_v<cudaGraphicsResource_t>);

constexpr const char* kSource = R"(
#include "twice.h"

__constant__ int table[2];
__device__ int calls;
static __constant__ int own_table[2];

namespace shapes {
__constant__ int corner;

template <class T, int kStep>
__global__ void fill(T* x) {
    x[threadIdx.x] = static_cast<T>(twice(corner) + kStep * static_cast<int>(threadIdx.x));
}
}  // namespace shapes

extern "C" __global__ void reverse(const int* from, int* to, int n) {
    __shared__ int block[64];
    const int i = threadIdx.x;
    block[i] = from[i];
    __syncthreads();
    if (i < n) to[i] = block[n - 1 - i] * table[0] + table[1];
    if (i == 0) atomicAdd(&calls, 1);
}

extern "C" __global__ void look_up(int* to) { to[threadIdx.x] = own_table[threadIdx.x]; }

extern "C" __global__ void write_at(int* to, int index) { to[index] = 1; }

extern "C" __global__ void dynamic(int* to) {
    extern __shared__ int values[];
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    __syncthreads();
    to[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x] + MORE;
}
)";
constexpr const char* kHeader = "__device__ inline int twice(int x) { return 2 * x; }\n";
constexpr const char* kHeaderName = "twice.h";

class Program {
  public:
    Program(const char* source, const std::vector<const char*>& expressions,
            const std::vector<const char*>& options) {
        EXPECT_EQ(nvrtcCreateProgram(&program_, source, "program.cu", 1, &kHeader, &kHeaderName),
                  NVRTC_SUCCESS);
        for (const char* expression : expressions)
            EXPECT_EQ(nvrtcAddNameExpression(program_, expression), NVRTC_SUCCESS);
        result_ = nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
    }
    ~Program() { EXPECT_EQ(nvrtcDestroyProgram(&program_), NVRTC_SUCCESS); }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    nvrtcResult result() const { return result_; }
    std::string log() const {
        std::size_t size = 0;
        EXPECT_EQ(nvrtcGetProgramLogSize(program_, &size), NVRTC_SUCCESS);
        std::string log(size, '\0');
        EXPECT_EQ(nvrtcGetProgramLog(program_, log.data()), NVRTC_SUCCESS);
        return log;
    }
    std::vector<char> ptx() const {
        std::size_t size = 0;
        EXPECT_EQ(nvrtcGetPTXSize(program_, &size), NVRTC_SUCCESS);
        std::vector<char> ptx(size);
        EXPECT_EQ(nvrtcGetPTX(program_, ptx.data()), NVRTC_SUCCESS);
        return ptx;
    }
    std::string lowered(const char* expression) const {
        const char* name = nullptr;
        EXPECT_EQ(nvrtcGetLoweredName(program_, expression, &name), NVRTC_SUCCESS);
        return name == nullptr ? "" : name;
    }

  private:
    nvrtcProgram program_ = nullptr;
    nvrtcResult result_;
};

// One module for all tests: compiling takes most of their time.
class Driver : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!why_no_device().empty()) return;
        ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
        CUdevice device = 0;
        ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
        ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
        const Program program(kSource, {"shapes::fill<float, 3>", "&shapes::corner"},
                              {"-DMORE=100", "--std=c++17"});
        ASSERT_EQ(program.result(), NVRTC_SUCCESS) << program.log();
        fill_name = program.lowered("shapes::fill<float, 3>");
        corner_name = program.lowered("&shapes::corner");
        ASSERT_EQ(cuModuleLoadData(&module, program.ptx().data()), CUDA_SUCCESS);
    }
    static void TearDownTestSuite() {
        if (module == nullptr) return;
        EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
        EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    }
    static CUfunction function(const char* name) {
        CUfunction found = nullptr;
        EXPECT_EQ(cuModuleGetFunction(&found, module, name), CUDA_SUCCESS) << name;
        return found;
    }

    static inline CUcontext context = nullptr;
    static inline CUmodule module = nullptr;
    static inline std::string fill_name, corner_name;
};

class DriverMemory {
  public:
    explicit DriverMemory(const std::vector<int>& values) : count_(values.size()) {
        EXPECT_EQ(cuMemAlloc(&pointer_, count_ * sizeof(int)), CUDA_SUCCESS);
        EXPECT_EQ(cuMemcpyHtoD(pointer_, values.data(), count_ * sizeof(int)), CUDA_SUCCESS);
    }
    ~DriverMemory() { EXPECT_EQ(cuMemFree(pointer_), CUDA_SUCCESS); }
    DriverMemory(const DriverMemory&) = delete;
    DriverMemory& operator=(const DriverMemory&) = delete;
    CUdeviceptr* address() { return &pointer_; }
    CUdeviceptr get() const { return pointer_; }
    template <class T = int>
    std::vector<T> to_host() const {
        std::vector<T> values(count_);
        EXPECT_EQ(cuMemcpyDtoH(values.data(), pointer_, count_ * sizeof(T)), CUDA_SUCCESS);
        return values;
    }

  private:
    std::size_t count_;
    CUdeviceptr pointer_ = 0;
};

TEST_F(Driver, LaunchesWithArgumentsByAddressOrPacked) {
    CUdeviceptr table = 0;
    std::size_t bytes = 0;
    ASSERT_EQ(cuModuleGetGlobal(&table, &bytes, module, "table"), CUDA_SUCCESS);
    EXPECT_EQ(bytes, 2 * sizeof(int));
    const int factors[2] = {10, 1};
    ASSERT_EQ(cuMemcpyHtoD(table, factors, sizeof factors), CUDA_SUCCESS);

    DriverMemory from({1, 2, 3, 4});
    DriverMemory to({0, 0, 0, 0});
    int count = 4;
    void* arguments[] = {from.address(), to.address(), &count};
    ASSERT_EQ(cuLaunchKernel(function("reverse"), 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(to.to_host(), (std::vector<int>{41, 31, 21, 11}));

    struct {
        CUdeviceptr from, to;
        int count;
    } packed{from.get(), to.get(), 2};
    std::size_t size = 2 * sizeof(CUdeviceptr) + sizeof(int);  // no more than the kernel takes
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    ASSERT_EQ(cuLaunchKernel(function("reverse"), 1, 1, 1, 4, 1, 1, 0, nullptr, nullptr, extra),
              CUDA_SUCCESS);
    EXPECT_EQ(to.to_host(), (std::vector<int>{21, 11, 21, 11}));

    CUdeviceptr calls = 0;
    int made = 0;
    ASSERT_EQ(cuModuleGetGlobal(&calls, nullptr, module, "calls"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoH(&made, calls, sizeof made), CUDA_SUCCESS);
    EXPECT_EQ(made, 2);
}

TEST_F(Driver, KernelsOfTemplatesHaveLoweredNames) {
    CUdeviceptr corner = 0;
    ASSERT_EQ(cuModuleGetGlobal(&corner, nullptr, module, corner_name.c_str()), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32(corner, 5, 1), CUDA_SUCCESS);
    DriverMemory x(std::vector<int>(3));
    void* arguments[] = {x.address()};
    ASSERT_EQ(cuLaunchKernel(function(fill_name.c_str()), 1, 1, 1, 3, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{10, 13, 16}));
}

#ifdef CUDA_ON_CPU
// Sets a variable of the environment while it lives.
class Variable {
  public:
    Variable(const char* name, const std::string& value) : name_(name), before_(value_of(name)) {
        setenv(name, value.c_str(), 1);
    }
    ~Variable() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    static std::string value_of(const char* name) {
        const char* const value = std::getenv(name);
        return value == nullptr ? "" : value;
    }
    const char* name_;
    std::string before_;
};

// What a program that crashes leaves behind is what is there while it runs.
TEST_F(Driver, ModulesLeaveNoFilesBehind) {
    const auto directory =
        std::filesystem::temp_directory_path() / ("driver_test_" + std::to_string(getpid()));
    ASSERT_TRUE(std::filesystem::create_directory(directory));
    {
        const Program program(kSource, {}, {"-DMORE=1"});
        const Variable temporary("TMPDIR", directory.string());
        CUmodule loaded = nullptr;
        ASSERT_EQ(cuModuleLoadData(&loaded, program.ptx().data()), CUDA_SUCCESS);
        for (const auto& each : std::filesystem::directory_iterator(directory))
            ADD_FAILURE() << each.path();
        std::string broken(program.ptx().data());
        broken.resize(5000);
        CUmodule none = nullptr;
        EXPECT_NE(cuModuleLoadData(&none, broken.c_str()), CUDA_SUCCESS);
        EXPECT_TRUE(std::filesystem::is_empty(directory));
        EXPECT_EQ(cuModuleUnload(loaded), CUDA_SUCCESS);
    }
    EXPECT_EQ(std::filesystem::remove_all(directory), 1u);
}

TEST_F(Driver, AChildThatEndsLeavesTheModulesOfItsParent) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        std::exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    DriverMemory to({0});
    int index = 64;  // just behind the allocation: further on, other memory may be
    void* arguments[] = {to.address(), &index};
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuLaunchKernel(function("write_at"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find(", in "), report.npos) << "the line of the module: " << report;
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}

TEST_F(Driver, ModulesMayBeLoadedThousandsOfTimes) {
    const Program program(kSource, {}, {"-DMORE=1"});
    const std::vector<char> image = program.ptx();
    for (int i = 0; i < 1100; ++i) {  // more than a process may have open files
        CUmodule loaded = nullptr;
        ASSERT_EQ(cuModuleLoadData(&loaded, image.data()), CUDA_SUCCESS) << i;
        ASSERT_EQ(cuModuleUnload(loaded), CUDA_SUCCESS);
    }
}
#endif

TEST_F(Driver, TheLogOfAModuleThatLoadsIsEmpty) {
    const Program program("extern \"C\" __global__ void nothing() {}", {}, {});
    ASSERT_EQ(program.result(), NVRTC_SUCCESS) << program.log();
    char log[8] = "before";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER};
    void* values[] = {reinterpret_cast<void*>(sizeof log), log};
    CUmodule loaded = nullptr;
    ASSERT_EQ(cuModuleLoadDataEx(&loaded, program.ptx().data(), 2, options, values), CUDA_SUCCESS);
    EXPECT_STREQ(log, "");
    EXPECT_EQ(cuModuleUnload(loaded), CUDA_SUCCESS);
}

TEST_F(Driver, VariablesOfTheirFileHaveNames) {
    CUdeviceptr table = 0;
    ASSERT_EQ(cuModuleGetGlobal(&table, nullptr, module, "own_table"), CUDA_SUCCESS);
    const int values[] = {7, 8};
    ASSERT_EQ(cuMemcpyHtoD(table, values, sizeof values), CUDA_SUCCESS);
    DriverMemory to({0, 0});
    void* arguments[] = {to.address()};
    ASSERT_EQ(cuLaunchKernel(function("look_up"), 1, 1, 1, 2, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(to.to_host(), (std::vector<int>{7, 8}));
}

__global__ void count_up(int* x, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) x[i] = i;
}

class VirtualMemory : public Driver {
  protected:
    void SetUp() override {
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        ASSERT_EQ(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                  CUDA_SUCCESS);
        access.location = properties.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    CUmemGenericAllocationHandle create() const {
        CUmemGenericAllocationHandle handle = 0;
        EXPECT_EQ(cuMemCreate(&handle, size, &properties, 0), CUDA_SUCCESS);
        return handle;
    }
    CUdeviceptr reserve(std::size_t bytes) const {
        CUdeviceptr address = 0;
        EXPECT_EQ(cuMemAddressReserve(&address, bytes, 0, 0, 0), CUDA_SUCCESS);
        return address;
    }
    void map(CUdeviceptr address, CUmemGenericAllocationHandle handle) const {
        EXPECT_EQ(cuMemMap(address, size, 0, handle, 0), CUDA_SUCCESS);
        EXPECT_EQ(cuMemSetAccess(address, size, &access, 1), CUDA_SUCCESS);
    }

    CUmemAllocationProp properties{};
    CUmemAccessDesc access{};
    std::size_t size = 0;  // of one piece
};

TEST_F(VirtualMemory, PiecesSideBySideAreOneArray) {
    int supported = 0;
    ASSERT_EQ(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(supported, 1);
    const CUdeviceptr address = reserve(3 * size);
    const CUmemGenericAllocationHandle first = create(), second = create();
    map(address, first);
    map(address + size, second);
    const int count = static_cast<int>(2 * size / sizeof(int));
    count_up<<<(count + 255) / 256, 256>>>(reinterpret_cast<int*>(address), count);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<int> copy(count);
    ASSERT_EQ(cuMemcpyDtoH(copy.data(), address, 2 * size), CUDA_SUCCESS);
    for (const int i : {0, count / 2 - 1, count / 2, count - 1})
        EXPECT_EQ(copy[i], i);
    int behind = 0;
    EXPECT_NE(cuMemcpyDtoH(&behind, address + 2 * size, sizeof behind), CUDA_SUCCESS)
        << "nothing is mapped there";

    // The memory keeps what it holds, wherever it is mapped.
    ASSERT_EQ(cuMemUnmap(address, size), CUDA_SUCCESS);
    EXPECT_NE(cuMemcpyDtoH(&behind, address, sizeof behind), CUDA_SUCCESS) << "it is not mapped any more";
    map(address + 2 * size, first);
    int moved = 0;
    ASSERT_EQ(cuMemcpyDtoH(&moved, address + 2 * size + 5 * sizeof(int), sizeof moved), CUDA_SUCCESS);
    EXPECT_EQ(moved, 5);

    EXPECT_EQ(cuMemUnmap(address + size, 2 * size), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(first), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(second), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressFree(address, 3 * size), CUDA_SUCCESS);
}

TEST_F(VirtualMemory, NeedsAccessAndRefusesMistakes) {
    const CUdeviceptr address = reserve(2 * size);
    const CUmemGenericAllocationHandle handle = create();
    ASSERT_EQ(cuMemMap(address, size, 0, handle, 0), CUDA_SUCCESS);
    int value = 3;
    EXPECT_NE(cuMemcpyHtoD(address, &value, sizeof value), CUDA_SUCCESS) << "cuMemSetAccess was not called";
    EXPECT_EQ(cuMemMap(address, size, 0, handle, 0), CUDA_ERROR_INVALID_VALUE) << "mapped already";
    EXPECT_EQ(cuMemSetAccess(address, 2 * size, &access, 1), CUDA_ERROR_INVALID_VALUE)
        << "half of it is not mapped";
#ifdef CUDA_ON_CPU  // driver 580 takes it
    EXPECT_EQ(cuMemUnmap(address + size, size), CUDA_ERROR_INVALID_VALUE) << "nothing is mapped there";
#endif
    CUmemGenericAllocationHandle none = 0;
    EXPECT_EQ(cuMemCreate(&none, size / 2, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(cuMemUnmap(address, size), CUDA_SUCCESS) << "the mapping outlives the handle";
    EXPECT_EQ(cuMemAddressFree(address, 2 * size), CUDA_SUCCESS);
}

TEST_F(VirtualMemory, ACompressionThatWasAskedForIsToldAgain) {
    int supported = 0;
    ASSERT_EQ(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0),
              CUDA_SUCCESS);
    if (supported == 0) GTEST_SKIP() << "the device compresses no memory";
    CUmemAllocationProp compressed = properties;
    compressed.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_EQ(cuMemCreate(&handle, size, &compressed, 0), CUDA_SUCCESS);
    CUmemAllocationProp told{};
    ASSERT_EQ(cuMemGetAllocationPropertiesFromHandle(&told, handle), CUDA_SUCCESS);
    EXPECT_EQ(told.allocFlags.compressionType, CU_MEM_ALLOCATION_COMP_GENERIC);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(VirtualMemory, ADescriptorIsAHandleOfTheSameMemory) {
    const CUdeviceptr address = reserve(2 * size);
    const CUmemGenericAllocationHandle handle = create();
    int descriptor = -1;
    ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_SUCCESS);
    CUmemGenericAllocationHandle imported = 0;
    ASSERT_EQ(cuMemImportFromShareableHandle(&imported,
                                             reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    close(descriptor);
    map(address, handle);
    map(address + size, imported);
    ASSERT_EQ(cuMemsetD32(address, 42, 10), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    int value = 0;
    ASSERT_EQ(cuMemcpyDtoH(&value, address + size + 9 * sizeof value, sizeof value), CUDA_SUCCESS);
    EXPECT_EQ(value, 42);
    EXPECT_EQ(cuMemUnmap(address, 2 * size), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(imported), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressFree(address, 2 * size), CUDA_SUCCESS);
}

TEST_F(Driver, ACallbackIsGivenItsStream) {
    struct Seen {
        CUstream stream = nullptr;
        CUresult status = CUDA_ERROR_UNKNOWN;
        int calls = 0;
    };
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    Seen seen;
    const auto look = [](CUstream of, CUresult status, void* data) {
        auto* const what = static_cast<Seen*>(data);
        what->stream = of;
        what->status = status;
        ++what->calls;
    };
    ASSERT_EQ(cuStreamAddCallback(stream, look, &seen, 0), CUDA_SUCCESS);
    EXPECT_NE(cuStreamAddCallback(stream, nullptr, &seen, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(seen.calls, 1);
    EXPECT_EQ(seen.stream, stream);
    EXPECT_EQ(seen.status, CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Driver, TheRuntimeGivesFunctionsOfTheDriverByName) {
    void* found = nullptr;
    auto status = cudaDriverEntryPointSymbolNotFound;
    ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &found, 12000, cudaEnableDefault, &status),
              cudaSuccess);
    ASSERT_EQ(status, cudaDriverEntryPointSuccess);
    int devices = 0;
    EXPECT_EQ(reinterpret_cast<CUresult (*)(int*)>(found)(&devices), CUDA_SUCCESS);
    EXPECT_GE(devices, 1);
    ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &found, 12000, cudaEnableDefault, &status),
              cudaSuccess);
    EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
    EXPECT_EQ(found, nullptr);
}

// Another process opens them: ipc_test.cu, by the runtime's functions, which these call.
TEST_F(Driver, HandlesForOtherProcesses) {
    DriverMemory memory(std::vector<int>(4));
    CUipcMemHandle handle;
    ASSERT_EQ(cuIpcGetMemHandle(&handle, memory.get()), CUDA_SUCCESS);
    CUdeviceptr opened = 0;
    EXPECT_NE(cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS)
        << "it is this process's own";
    EXPECT_NE(cuIpcCloseMemHandle(memory.get()), CUDA_SUCCESS);
    CUevent event = nullptr;
    CUipcEventHandle event_handle;
    ASSERT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ASSERT_EQ(cuIpcGetEventHandle(&event_handle, event), CUDA_SUCCESS);
    CUevent again = nullptr;
    EXPECT_NE(cuIpcOpenEventHandle(&again, event_handle), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
    EXPECT_EQ(memory.to_host(), std::vector<int>(4));
}

TEST_F(Driver, StreamsEventsAndDynamicSharedMemory) {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    DriverMemory to(std::vector<int>(4));
    void* arguments[] = {to.address()};
    const CUfunction dynamic = function("dynamic");
    ASSERT_EQ(cuLaunchKernel(dynamic, 1, 1, 1, 4, 1, 1, 4 * sizeof(int), stream, arguments, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(to.to_host(), (std::vector<int>{103, 102, 101, 100}));
    EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
    int most = 0;
    ASSERT_EQ(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, dynamic), CUDA_SUCCESS);
    EXPECT_EQ(most, 1024);
    EXPECT_EQ(cuFuncSetAttribute(dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000),
              CUDA_SUCCESS);
}

TEST_F(Driver, SharesMemoryWithTheRuntime) {
    int* pointer = nullptr;
    ASSERT_EQ(cudaMalloc(&pointer, 4 * sizeof(int)), cudaSuccess);
    ASSERT_EQ(cuMemsetD32(reinterpret_cast<CUdeviceptr>(pointer), 7, 4), CUDA_SUCCESS);
    int values[4] = {};
    ASSERT_EQ(cudaMemcpy(values, pointer, sizeof values, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(values[3], 7);
    EXPECT_EQ(cuMemFree(reinterpret_cast<CUdeviceptr>(pointer)), CUDA_SUCCESS);
}

TEST_F(Driver, ContextsMakeAStack) {
    CUcontext other = nullptr;
#if CUDA_VERSION >= 13000
    ASSERT_EQ(cuCtxCreate(&other, nullptr, 0, 0), CUDA_SUCCESS);
#else
    ASSERT_EQ(cuCtxCreate(&other, 0, 0), CUDA_SUCCESS);
#endif
    CUcontext current = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, other);
    ASSERT_EQ(cuCtxPopCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, other);
    ASSERT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, context);
    EXPECT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
}

TEST_F(Driver, ErrorsHaveNames) {
    CUfunction none = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&none, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
    CUdevice device = 0;
    EXPECT_EQ(cuDeviceGet(&device, 4711), CUDA_ERROR_INVALID_DEVICE);
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuMemAlloc(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
    const char* name = nullptr;
    ASSERT_EQ(cuGetErrorName(CUDA_ERROR_NOT_FOUND, &name), CUDA_SUCCESS);
    EXPECT_STREQ(name, "CUDA_ERROR_NOT_FOUND");
    CUmodule broken = nullptr;
    EXPECT_NE(cuModuleLoadData(&broken, "this is no module"), CUDA_SUCCESS);
}

TEST(Nvrtc, MistakesAreInTheLog) {
    const Program program("__global__ void k(int* x) {\n    *x = not_declared;\n}\n", {}, {});
    EXPECT_EQ(program.result(), NVRTC_ERROR_COMPILATION);
    EXPECT_NE(program.log().find("program.cu"), std::string::npos) << program.log();
    EXPECT_NE(program.log().find("not_declared"), std::string::npos) << program.log();
}

// Wherever a header's name leads, no file is made there: all that is left of this program is in
// memory.
TEST(Nvrtc, HeadersMayHaveNamesThatLeadElsewhere) {
    std::string directory = testing::TempDir() + "nvrtc_test_XXXXXX";
    ASSERT_NE(mkdtemp(directory.data()), nullptr);
    const std::string temporary = directory + "/temporary";
    std::filesystem::create_directory(temporary);
    const char* const before = std::getenv("TMPDIR");
    const std::string old_place = before == nullptr ? "" : before;
    setenv("TMPDIR", temporary.c_str(), 1);

    const std::string absolute = directory + "/absolute.h";
    const std::vector<const char*> names = {"../up.h", "../../higher.h", absolute.c_str(), "sub/same.h"};
    const std::vector<const char*> texts = {"constexpr int kUp = 1;\n", "constexpr int kHigher = 20;\n",
                                            "constexpr int kAbsolute = 300;\n", "#include \"../up.h\"\n"};
    const std::string source = "#include \"sub/same.h\"\n#include <../../higher.h>\n#include \"" + absolute +
                               "\"\nstatic_assert(kUp + kHigher + kAbsolute == 321);\n"
                               "__global__ void k(int* x) {}\n";
    nvrtcProgram program = nullptr;
    ASSERT_EQ(nvrtcCreateProgram(&program, source.c_str(), "program.cu", static_cast<int>(names.size()),
                                 texts.data(), names.data()),
              NVRTC_SUCCESS);
    const nvrtcResult result = nvrtcCompileProgram(program, 0, nullptr);
    std::size_t size = 0;
    EXPECT_EQ(nvrtcGetProgramLogSize(program, &size), NVRTC_SUCCESS);
    std::string log(size, '\0');
    EXPECT_EQ(nvrtcGetProgramLog(program, log.data()), NVRTC_SUCCESS);
    EXPECT_EQ(result, NVRTC_SUCCESS) << log;
    EXPECT_EQ(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);

    std::string left;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
        if (entry.path() != temporary) left += entry.path().string() + "\n";
    EXPECT_EQ(left, "");
    if (before == nullptr)
        unsetenv("TMPDIR");
    else
        setenv("TMPDIR", old_place.c_str(), 1);
    std::filesystem::remove_all(directory);
}

TEST(Nvrtc, RefusesANullHeaderAndANullOption) {
    nvrtcProgram program = nullptr;
    const char* const name = "a.h";
    const char* const null = nullptr;
    EXPECT_EQ(nvrtcCreateProgram(&program, "", "program.cu", 1, &null, &name), NVRTC_ERROR_INVALID_INPUT);
    EXPECT_EQ(nvrtcCreateProgram(&program, "", "program.cu", 1, &name, &null), NVRTC_ERROR_INVALID_INPUT);
    ASSERT_EQ(nvrtcCreateProgram(&program, "", "program.cu", 0, nullptr, nullptr), NVRTC_SUCCESS);
    EXPECT_EQ(nvrtcCompileProgram(program, 1, &null), NVRTC_ERROR_INVALID_OPTION);
    EXPECT_EQ(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
}

void go_on_behind_the_runtime() {
    CUcontext context = nullptr;
    if (cuInit(0) != CUDA_SUCCESS || cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != nullptr)
        std::exit(2);
    if (cudaFree(nullptr) != cudaSuccess || cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr)
        std::exit(3);
    CUdeviceptr memory = 0;
    std::exit(cuMemAlloc(&memory, 4) == CUDA_SUCCESS ? 0 : 4);
}

TEST(Contexts, AreMadeByCudaFreeOfNull) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(go_on_behind_the_runtime(), testing::ExitedWithCode(0), "");
}

}  // namespace
