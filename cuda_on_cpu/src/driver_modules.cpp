// The driver API: modules, and the kernels in them.
#include <cstddef>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "cuda_on_cpu/kernel_api.h"
#include "cuda_runtime_api.h"
#include "device.hpp"
#include "driver.hpp"
#include "modules.hpp"
#include "stream.hpp"

struct CUlinkState_st {
    std::vector<std::string> images;
};

namespace cuda_on_cpu {
namespace {

CUresult check_function(const char* name, CUfunction function) {
    if (function != nullptr) return CUDA_SUCCESS;
    return refuse_call(CUDA_ERROR_INVALID_HANDLE, name, "the function is null");
}

CUresult find_function(const char* caller, CUfunction* function, CUmodule module, const char* name) {
    if (function == nullptr || module == nullptr || name == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, caller,
                           "the function to set, the module or the name is null");
    auto& known = module->functions[name];
    if (known == nullptr) {
        const auto found = module->kernels.find(name);
        if (found == module->kernels.end()) {
            std::string all;
            for (const auto& [other, symbol] : module->kernels)
                all += (all.empty() ? "" : ", ") + other;
            return refuse_call(CUDA_ERROR_NOT_FOUND, caller, "the module has no kernel '%s'; it has: %s",
                               name, all.empty() ? "none" : all.c_str());
        }
        Kernel* const kernel = kernel_at(found->second.address);
        if (kernel == nullptr) return refuse_call(CUDA_ERROR_NOT_FOUND, caller, "'%s' is no kernel", name);
        known = std::make_unique<CUfunc_st>(CUfunc_st{name, found->second.address, module, kernel});
    }
    *function = known.get();
    return CUDA_SUCCESS;
}

CUresult read_file(const char* function, const char* name, std::string* bytes) {
    if (name == nullptr) return refuse_call(CUDA_ERROR_INVALID_VALUE, function, "the file's name is null");
    std::ifstream file(name, std::ios::binary);
    if (!file) return refuse_call(CUDA_ERROR_FILE_NOT_FOUND, function, "file '%s' cannot be read", name);
    bytes->assign(std::istreambuf_iterator<char>(file), {});
    bytes->append(64, '\0');  // images are read without knowing their size
    return CUDA_SUCCESS;
}

// The addresses of the arguments in the buffer of `extra`.
CUresult unpack(const char* function, const Kernel& kernel, void** extra, std::vector<void*>* arguments) {
    char* buffer = nullptr;
    std::size_t bytes = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = static_cast<char*>(extra[1]);
        } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            bytes = *static_cast<const std::size_t*>(extra[1]);
        } else {
            return refuse_call(CUDA_ERROR_INVALID_VALUE, function,
                               "extra has %p; expected CU_LAUNCH_PARAM_...", *extra);
        }
    }
    std::size_t at = 0;
    for (const ParameterSize* p = kernel.parameters; p != nullptr && p->size != 0; ++p) {
        at = (at + p->alignment - 1) / p->alignment * p->alignment;
        if (buffer == nullptr || at + p->size > bytes)
            return refuse_call(CUDA_ERROR_INVALID_VALUE, function,
                               "the buffer of arguments has %zu bytes; expected at least %zu", bytes,
                               at + p->size);
        arguments->push_back(buffer + at);
        at += p->size;
    }
    return CUDA_SUCCESS;
}

CUresult launch_function(const char* caller, CUfunction function, void** arguments, void** extra,
                         const LaunchConfiguration& configuration) {
    if (const CUresult error = check_function(caller, function); error != CUDA_SUCCESS) return error;
    std::vector<void*> unpacked;
    if (arguments == nullptr && extra != nullptr) {
        if (const CUresult error = unpack(caller, *function->kernel, extra, &unpacked); error != CUDA_SUCCESS)
            return error;
    }
    if (arguments == nullptr && extra == nullptr && function->kernel->parameters != nullptr &&
        function->kernel->parameters.load()->size != 0)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, caller,
                           "kernel %s has parameters, and no arguments are given", function->name.c_str());
    return result_of(
        launch_untyped(function->address, arguments != nullptr ? arguments : unpacked.data(), configuration));
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// --- Modules -------------------------------------------------------------------------------------

CUresult cuModuleLoad(CUmodule* module, const char* name) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    std::string bytes;
    CUDA_ON_CPU_CHECK(read_file(__func__, name, &bytes));
    return load_module(__func__, module, image_at(bytes.data()));
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    CUDA_ON_CPU_CHECK(check_current(__func__));
    return load_module(__func__, module, image_at(image));
}

// Nothing is compiled, so the logs are empty.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
    for (unsigned i = 0; i < count; ++i) {
        const bool is_log = options[i] == CU_JIT_INFO_LOG_BUFFER || options[i] == CU_JIT_ERROR_LOG_BUFFER;
        if (is_log && values[i] != nullptr) *static_cast<char*>(values[i]) = '\0';
    }
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    return cuModuleLoadData(module, image);
}

// The code stays in memory, because messages may still contain the names of kernels that were
// launched.
CUresult cuModuleUnload(CUmodule module) {
    if (module == nullptr) return refuse_call(CUDA_ERROR_INVALID_HANDLE, __func__, "the module is null");
    const CUresult result = result_of(cudaDeviceSynchronize());
    delete module;
    return result;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    return find_function(__func__, function, module, name);
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
    *count = static_cast<unsigned>(module->kernels.size());
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr* pointer, std::size_t* bytes, CUmodule module, const char* name) {
    if (module == nullptr || name == nullptr)
        return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "the module or the name is null");
    const auto found = module->variables.find(name);
    if (found == module->variables.end())
        return refuse_call(CUDA_ERROR_NOT_FOUND, __func__, "the module has no variable '%s'", name);
    if (pointer != nullptr) *pointer = number_of(found->second.address);
    if (bytes != nullptr) *bytes = found->second.size;
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
    *state = new CUlinkState_st;
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType, void* data, std::size_t, const char*, unsigned,
                       CUjit_option*, void**) {
    const Image image = image_at(data);
    if (image.error != CUDA_SUCCESS) return refuse_call(image.error, __func__, "%s", image.why.c_str());
    state->images.push_back(image.bytes);
    return CUDA_SUCCESS;
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* file, unsigned count,
                       CUjit_option* options, void** values) {
    std::string bytes;
    CUDA_ON_CPU_CHECK(read_file(__func__, file, &bytes));
    return cuLinkAddData(state, type, bytes.data(), bytes.size(), file, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* bytes) {
    if (state->images.size() != 1)
        return refuse_call(CUDA_ERROR_NOT_SUPPORTED, __func__,
                           "%zu images are to become one; expected one image: give all sources to one "
                           "nvcc command",
                           state->images.size());
    *image = state->images.front().data();
    if (bytes != nullptr) *bytes = state->images.front().size();
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
    delete state;
    return CUDA_SUCCESS;
}

// Libraries are modules, and kernels are functions, that belong to no context. Here contexts share
// everything, so both pairs have the same implementation.
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned, void*,
                           void**, unsigned) {
    return load_module(__func__, reinterpret_cast<CUmodule*>(library), image_at(image));
}

CUresult cuLibraryUnload(CUlibrary library) {
    return cuModuleUnload(reinterpret_cast<CUmodule>(library));
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    return find_function(__func__, reinterpret_cast<CUfunction*>(kernel), reinterpret_cast<CUmodule>(library),
                         name);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    *function = reinterpret_cast<CUfunction>(kernel);
    return check_function(__func__, *function);
}

// --- Kernels -------------------------------------------------------------------------------------

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    cudaFuncAttributes attributes;
    CUDA_ON_CPU_CHECK(result_of(get_attributes(&attributes, function->kernel)));
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = attributes.maxThreadsPerBlock;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = static_cast<int>(attributes.sharedSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            *value = static_cast<int>(attributes.constSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            *value = static_cast<int>(attributes.localSizeBytes);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = attributes.numRegs;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
            *value = attributes.ptxVersion;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = attributes.binaryVersion;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = attributes.maxDynamicSharedSizeBytes;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            *value = attributes.preferredShmemCarveout;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            *value = function->kernel->non_portable_cluster;
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
            *value = 0;
            return CUDA_SUCCESS;
        default:
            return refuse_call(CUDA_ERROR_INVALID_VALUE, __func__, "attribute is %d",
                               static_cast<int>(attribute));
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    return result_of(set_attribute(function->kernel, static_cast<cudaFuncAttribute>(attribute), value));
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
    return check_function(__func__, function);
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    *name = function->name.c_str();
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** arguments, void** extra) {
    return launch_function(__func__, function, arguments, extra,
                           {.grid = dim3(grid_x, grid_y, grid_z),
                            .block = dim3(block_x, block_y, block_z),
                            .dynamic_shared = shared_bytes,
                            .stream = stream});
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void** arguments) {
    return launch_function(__func__, function, arguments, nullptr,
                           {.grid = dim3(grid_x, grid_y, grid_z),
                            .block = dim3(block_x, block_y, block_z),
                            .dynamic_shared = shared_bytes,
                            .stream = stream,
                            .cooperative = true});
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     std::size_t dynamic_shared) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    return result_of(max_active_blocks(blocks, function->kernel, block_size, dynamic_shared));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_size, std::size_t dynamic_shared,
                                                              unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block_size, std::size_t dynamic_shared,
                                          int limit) {
    CUDA_ON_CPU_CHECK(check_function(__func__, function));
    if (shared_of_block_size != nullptr) dynamic_shared = shared_of_block_size(limit > 0 ? limit : 1024);
    return result_of(max_potential_block_size(min_grid, block_size, function->kernel, dynamic_shared, limit));
}
