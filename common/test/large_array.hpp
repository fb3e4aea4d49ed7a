// Arrays with more than 2^32 elements, for tests on the CPU, which has neither the memory nor the
// time for all of them. Only the parts around some places exist, and only the blocks of a kernel
// that belong to these places run.
//
//     const std::size_t n = (std::size_t{1} << 32) + 5;
//     course::LargeArray<float> a(n), c(n);  // parts at 0, n / 2 and n
//     course::run_few_blocks([&] { launch(a.span(), c.span()); });
//     EXPECT_EQ(c[n / 2], ...) << course::large_element(n / 2, n);
//
// A kernel that computes an index in 32 bits misses the elements that it should store, or accesses
// parts that do not exist.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/inspection.hpp"
#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_view.hpp"
#ifdef CUDA_ON_CPU
#include "cuda_on_cpu/few_blocks.h"
#endif

namespace course {

// Places in an array and in the grid that processes it, as fractions of their size.
inline const std::vector<double> kLargePlaces = {0, 0.5, 1};

// Why no LargeArray can be used here; empty if one can.
inline std::string why_no_large_arrays() {
    if (!is_cpu_stand_in()) return "for the CPU: on a GPU, the whole array is tested";
    if (why_no_inspection().empty()) return "an inspection would keep a record of every element";
    return "";
}

// The text of an element in messages.
inline std::string large_element(std::size_t element, std::size_t size) {
    return "element " + std::to_string(element) + " of " + std::to_string(size) +
           ": is its index computed in 64 bits?";
}

inline constexpr const char* kLargeIndexHint =
    "Of the grid only some blocks run, and of the arrays only the elements around theirs exist. "
    "Is each index computed in 64 bits? Do adjacent threads take adjacent elements, or "
    "does one thread do the work of all?";

// Calls `launch` and runs only the blocks of its kernels around `places`. A kernel that leaves the
// existing parts, or waits for a block that does not run, fails the test with `hint`.
template <class Launch>
void run_few_blocks(const Launch& launch, [[maybe_unused]] const std::vector<double>& places = kLargePlaces,
                    const char* hint = kLargeIndexHint) {
#ifdef CUDA_ON_CPU
    const cuda_on_cpu::FewBlocks few(places);
#endif
    try {
        launch();
        CUDA_CHECK(cudaDeviceSynchronize());
    } catch (const CudaError& error) {
        FAIL() << error.what() << "\n" << hint;
    }
}

// `size` elements, of which only those within `reach` of one of `places` exist. They are 0 at
// first.
template <class T>
class LargeArray {
  public:
    explicit LargeArray(std::size_t size, std::size_t reach = std::size_t{1} << 16,
                        std::vector<double> places = kLargePlaces)
        : size_(size), reach_(std::min(reach, size)), places_(std::move(places)) {
        void* const memory =
            mmap(nullptr, bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        data_ = static_cast<T*>(memory);
        for (std::size_t i = 0; i < places_.size(); ++i)
            make_accessible(part(i));
        CUDA_CHECK(cudaHostRegister(data_, bytes(), cudaHostRegisterDefault));
    }
    ~LargeArray() {
        static_cast<void>(cudaHostUnregister(data_));
        munmap(data_, bytes());
    }
    LargeArray(const LargeArray&) = delete;
    LargeArray& operator=(const LargeArray&) = delete;

    DeviceSpan<T> span() const { return DeviceSpan<T>::from_device_pointer(data_, size_); }
    // The elements around place `i`.
    std::span<T> part(std::size_t i) const {
        const std::size_t at = static_cast<std::size_t>(places_[i] * static_cast<double>(size_));
        const std::size_t begin = at - std::min(at, reach_);
        return {data_ + begin, std::min(at + reach_, size_) - begin};
    }
    // Host access to an element that exists.
    T& operator[](std::size_t element) const { return data_[element]; }

  private:
    static constexpr std::size_t kPage = 4096;

    std::size_t bytes() const { return size_ * sizeof(T); }

    // Rounds to whole pages, because the system protects memory by pages.
    static void make_accessible(std::span<T> elements) {
        char* const begin = reinterpret_cast<char*>(elements.data());
        char* const page = begin - reinterpret_cast<std::uintptr_t>(begin) % kPage;
        const auto length = static_cast<std::size_t>(begin + elements.size_bytes() - page);
        if (mprotect(page, length, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    }

    std::size_t size_;
    std::size_t reach_;
    std::vector<double> places_;
    T* data_ = nullptr;
};

}  // namespace course
