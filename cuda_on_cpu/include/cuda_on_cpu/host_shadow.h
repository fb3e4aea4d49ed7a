// The translator puts these around the name of a `__device__` variable or function where host code
// uses it as if it were the device's: on a GPU it is the address of another object, the host's.
#pragma once

#include <cstddef>

namespace cuda_on_cpu {

// Memory that nothing can access; the same for each call with that variable or function.
void* shadow_of_variable(const volatile void* variable, std::size_t size, const char* name);
void* shadow_of_function(void (*function)(), const char* name);

// `&variable`
template <class T>
T& host_shadow(T& variable, const char* name) {
    return *(T*)shadow_of_variable(&variable, sizeof variable, name);
}

// `variable`, which is an address only if it is an array.
template <class T>
T& host_value(T& variable, const char*) {
    return variable;
}
template <class T, std::size_t kSize>
auto host_value(T (&variable)[kSize], const char* name) -> T (&)[kSize] {
    return host_shadow(variable, name);
}

template <class Result, class... Parameters>
auto host_address(Result (*function)(Parameters...), const char* name) -> Result (*)(Parameters...) {
    return reinterpret_cast<Result (*)(Parameters...)>(
        shadow_of_function(reinterpret_cast<void (*)()>(function), name));
}

}  // namespace cuda_on_cpu
