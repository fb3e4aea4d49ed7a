// What the programs of this directory share: checked calls, arrays on the device, and the line that
// each of them prints for a figure.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(2);                                                                       \
        }                                                                                       \
    } while (false)

namespace errata {

// An array in device memory, made from one of the host and freed with the object.
template <typename T>
class OnDevice {
  public:
    explicit OnDevice(const std::vector<T>& values) : size_(values.size()) {
        CHECK(cudaMalloc(&data_, size_ * sizeof(T)));
        CHECK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    OnDevice(std::size_t size, T value) : OnDevice(std::vector<T>(size, value)) {}
    ~OnDevice() { cudaFree(data_); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

    T* data() const { return data_; }

    // After the kernels before it, whose errors end the program.
    std::vector<T> to_host() const {
        CHECK(cudaGetLastError());
        std::vector<T> values(size_);
        CHECK(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }

  private:
    std::size_t size_;
    T* data_ = nullptr;
};

// How many of the elements from `first` on differ.
template <typename T>
int differences(const std::vector<T>& a, const std::vector<T>& b, std::size_t first = 0) {
    int count = 0;
    for (std::size_t i = first; i < a.size() && i < b.size(); ++i)
        count += a[i] != b[i];
    return count;
}

// Prints what both forms did: how many of the `unit`s are wrong. True if the reported form is wrong
// and the corrected one is right; then the line has the word "shown".
inline bool show(const char* figure, const char* unit, int reported, int corrected) {
    const bool is_shown = reported != 0 && corrected == 0;
    std::printf("%s %s: reported form: %d %s; corrected form: %d\n", figure, is_shown ? "shown" : "NOT SHOWN",
                reported, unit, corrected);
    return is_shown;
}

}  // namespace errata
