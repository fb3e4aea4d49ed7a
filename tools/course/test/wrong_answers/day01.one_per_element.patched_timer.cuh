// Events and clocks of its own: no time passes.
// exercise: day01/one_per_element
// expect: cudaEventElapsedTime
// added to the solution: vector_add.cuh
#include <chrono>

extern "C" cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
    *milliseconds = 0.001f;
    return cudaSuccess;
}
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
    return {};
}
