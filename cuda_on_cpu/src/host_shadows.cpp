#include "host_shadows.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <typeinfo>

#include "cuda_on_cpu/host_shadow.h"
#include "exit_report.hpp"
#include "memory.hpp"
#include "pages.hpp"

namespace cuda_on_cpu {
namespace {

struct Shadow {
    char* begin;
    std::size_t size;
    const char* name;
    bool is_function;
};

std::mutex mutex;
using Shadows = std::map<const volatile void*, Shadow>;  // indexed by the variable or the function
// Never destroyed: kernels may run in destructors of static objects.
Shadows& shadows() {
    static auto& all = *new Shadows;
    return all;
}

void* shadow_of(const volatile void* original, std::size_t size, const char* name, bool is_function) {
    const std::scoped_lock lock(mutex);
    const auto [found, is_new] = shadows().try_emplace(original, Shadow{nullptr, size, name, is_function});
    if (is_new) {
        void* const pages = mmap(nullptr, round_up_to_pages(size), PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) throw std::bad_alloc();
        found->second.begin = static_cast<char*>(pages);
    }
    return found->second.begin;
}

}  // namespace

void* shadow_of_variable(const volatile void* variable, std::size_t size, const char* name) {
    return shadow_of(variable, size, name, false);
}

void* shadow_of_function(void (*function)(), const char* name) {
    return shadow_of(reinterpret_cast<void*>(function), 1, name, true);
}

std::string describe_shadow(const volatile void* address) {
    const char* const byte = const_cast<const char*>(static_cast<const volatile char*>(address));
    const std::scoped_lock lock(mutex);
    for (const auto& [original, shadow] : shadows()) {
        if (byte < shadow.begin || byte > shadow.begin + shadow.size) continue;
        const std::string name = shadow.name;
        if (shadow.is_function)
            return "the host's address of the __device__ function '" + name +
                   "', which is not the device's: take it in device code, as in `__device__ auto pointer = " +
                   name + ";`, and bring it to the host with cudaMemcpyFromSymbol()";
        return "the host's address of the __device__ variable '" + name +
               "', which is not the device's: copy with cudaMemcpyToSymbol() and cudaMemcpyFromSymbol(), use "
               "the variable in a kernel by its name, or ask cudaGetSymbolAddress() for its address";
    }
    return {};
}

// --- Virtual functions ---------------------------------------------------------------------------

namespace {

// Three classes of the kinds that there are, of which the type information is of three types.
struct Base {
    virtual ~Base() = default;
};
struct OtherBase {
    virtual ~OtherBase() = default;
};
struct OneBase : Base {};
struct TwoBases : Base, OtherBase {};

std::uintptr_t word_at(std::uintptr_t address) {
    std::uintptr_t word;
    std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
    return word;
}

bool is_type_information(std::uintptr_t address) {
    static const std::uintptr_t kinds[] = {word_at(reinterpret_cast<std::uintptr_t>(&typeid(Base))),
                                           word_at(reinterpret_cast<std::uintptr_t>(&typeid(OneBase))),
                                           word_at(reinterpret_cast<std::uintptr_t>(&typeid(TwoBases)))};
    return std::ranges::find(kinds, word_at(address)) != std::end(kinds);
}

// A table of virtual functions begins behind the address of the class's type information.
bool is_virtual_table(std::uintptr_t address) {
    const ImageRange image = writable_image();
    const auto in_image = [&image](std::uintptr_t place) {
        return place % sizeof place == 0 && place >= image.begin && place + sizeof place <= image.end;
    };
    if (!in_image(address) || !in_image(address - sizeof address)) return false;
    const std::uintptr_t type = word_at(address - sizeof address);
    return in_image(type) && is_type_information(type);
}

}  // namespace

void look_for_virtual_functions(const void* bytes, std::size_t size) {
    constexpr std::size_t kLookedAt = 1024;  // bytes: objects in an array are alike
    const auto* const begin = static_cast<const char*>(bytes);
    for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= std::min(size, kLookedAt);
         at += sizeof(std::uintptr_t)) {
        std::uintptr_t word;
        std::memcpy(&word, begin + at, sizeof word);
        if (is_virtual_table(word)) return note_virtual_functions();
    }
}

}  // namespace cuda_on_cpu
