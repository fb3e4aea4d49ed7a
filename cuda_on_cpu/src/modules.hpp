// Modules of the driver API: shared objects that nvcc of the stand-in made, loaded while the
// program runs.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cuda_on_cpu {

class Kernel;

// A kernel or variable of a module.
struct ModuleSymbol {
    char* address;
    std::size_t size;
};

}  // namespace cuda_on_cpu

struct CUfunc_st {
    std::string name;
    const void* address;
    CUmodule module;
    cuda_on_cpu::Kernel* kernel;
};

struct CUmod_st {
    CUmod_st() = default;
    CUmod_st(const CUmod_st&) = delete;
    CUmod_st& operator=(const CUmod_st&) = delete;
    ~CUmod_st();

    const void* dynamic = nullptr;  // dynamic section of the shared object
    std::map<std::string, cuda_on_cpu::ModuleSymbol, std::less<>> kernels;
    std::map<std::string, cuda_on_cpu::ModuleSymbol, std::less<>> variables;
    std::map<std::string, std::unique_ptr<CUfunc_st>, std::less<>>
        functions;  // those that the program has looked up
};

namespace cuda_on_cpu {

// An image in memory, or why it is invalid.
struct Image {
    std::string bytes;  // of a shared object
    CUresult error = CUDA_SUCCESS;
    std::string why{};
};
Image image_at(const void* data);

// Loads the image. Prints what is wrong with it, as a message of `function`.
CUresult load_module(const char* function, CUmodule* module, const Image& image);
// The kernel or variable whose address the variable `pointer` of a shared object holds; "" if there
// is none.
std::string pointed_to(std::string_view shared_object, std::string_view pointer);

}  // namespace cuda_on_cpu
