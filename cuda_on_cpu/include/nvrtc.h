// NVRTC: CUDA C++ compiled while the program runs, here by the stand-in's nvcc, which must be
// installed. nvrtcGetPTX and nvrtcGetCUBIN return a module for cuModuleLoadData: code for the CPU.
// CUDA_ON_CPU_NVCC names the nvcc to use. Link programs with nvcc and -lnvrtc -lcuda.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
    NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4,
    NVRTC_ERROR_INVALID_OPTION = 5,
    NVRTC_ERROR_COMPILATION = 6,
    NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
    NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
    NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
    NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
    NVRTC_ERROR_INTERNAL_ERROR = 11,
    NVRTC_ERROR_TIME_FILE_WRITE_FAILED = 12,
} nvrtcResult;

typedef struct _nvrtcProgram* nvrtcProgram;

const char* nvrtcGetErrorString(nvrtcResult result);
nvrtcResult nvrtcVersion(int* major, int* minor);
nvrtcResult nvrtcGetNumSupportedArchs(int* count);
nvrtcResult nvrtcGetSupportedArchs(int* archs);

// `headers`: the texts of files that the source can include by `include_names`.
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int header_count,
                               const char* const* headers, const char* const* include_names);
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program);
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count, const char* const* options);
// Sizes include the null character at the end.
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size);
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log);
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* size);
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin);

// Adds a kernel or a variable, such as "scale<float>" or "&space::table"; nvrtcGetLoweredName()
// returns its name in the module.
nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression);
nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression, const char** name);

#ifdef __cplusplus
}

#include <cxxabi.h>

#include <cstdlib>
#include <string>
#include <typeinfo>

inline nvrtcResult nvrtcGetTypeName(const std::type_info& type, std::string* name) {
    int status = 0;
    char* const text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
    if (status != 0) return NVRTC_ERROR_INTERNAL_ERROR;
    *name = text;
    std::free(text);
    return NVRTC_SUCCESS;
}
template <class T>
nvrtcResult nvrtcGetTypeName(std::string* name) {
    return nvrtcGetTypeName(typeid(T), name);
}
#endif

#include "cuda_on_cpu/macros_back.h"
