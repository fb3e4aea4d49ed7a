// One call from Python: its tensors, and where it is carried out.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "range.hpp"
#include "tensor.hpp"

namespace course_python {

// Makes a device the current one, for as long as it lives.
class CurrentDevice {
  public:
    explicit CurrentDevice(int device) {
        CUDA_CHECK(cudaGetDevice(&before_));
        if (device != before_) CUDA_CHECK(cudaSetDevice(device));
    }
    ~CurrentDevice() { static_cast<void>(cudaSetDevice(before_)); }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

  private:
    int before_ = 0;
};

// Host memory that kernels of the stand-in may use, for as long as this lives. One at a time:
// memory can be registered only once, and two calls may have a tensor in common.
class RegisteredMemory {
  public:
    explicit RegisteredMemory(const std::deque<Tensor>& tensors);
    ~RegisteredMemory();
    RegisteredMemory(const RegisteredMemory&) = delete;
    RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  private:
    struct Range {
        std::byte* begin;
        std::byte* end;
    };
    std::unique_lock<std::mutex> alone_;
    std::vector<Range> ranges_;  // apart from each other
};

class Call {
  public:
    // `function`: the name that a profiler shows.
    Call(const char* function, std::uintptr_t stream)
        : range_(function), stream_(reinterpret_cast<cudaStream_t>(stream)) {}

    const Tensor& input(const char* name, nanobind::handle object) {
        return tensors_.emplace_back(name, object, Access::kRead);
    }
    const Tensor& output(const char* name, nanobind::handle object) {
        return tensors_.emplace_back(name, object, Access::kWrite);
    }

    bool on_gpu() const { return tensors_.front().on_gpu(); }
    int device() const { return tensors_.front().device(); }

    // Are the tensors of the CPU, where kernels are for a GPU? Then no kernel runs.
    bool is_left_to_the_reference() const { return !on_gpu() && !course::is_cpu_stand_in(); }

    // Memory for intermediate results, of at least `bytes`. On a GPU it is `workspace`, which the
    // caller's library has allocated; on the stand-in it is allocated here, and `workspace` is
    // None.
    course::DeviceSpan<std::byte> scratch(nanobind::handle workspace, std::size_t bytes) {
        if (bytes == 0) return {};
        if (on_gpu()) return output("workspace", workspace).vector<std::byte>(bytes);
        if (course::is_cpu_stand_in()) of_the_stand_in_ = course::DeviceBuffer<std::byte>(bytes);
        return of_the_stand_in_.span();
    }
    // The same as elements of another type.
    template <class T>
    course::DeviceSpan<T> scratch_of(nanobind::handle workspace, std::size_t elements) {
        const auto bytes = scratch(workspace, elements * sizeof(T));
        return course::DeviceSpan<T>::from_device_pointer(reinterpret_cast<T*>(bytes.data()),
                                                          bytes.size() / sizeof(T));
    }

    // Tensors of a GPU: kernels(stream). Of the CPU: the same kernels on the stand-in, or, where
    // kernels are for a GPU, the CPU reference. Both without the GIL. ValueError for tensors in
    // different places, or an output that overlaps anything.
    template <class Kernels, class Reference>
    void run(const Kernels& kernels, const Reference& reference) const {
        check();
        const nanobind::gil_scoped_release others_may_run;
        if (on_gpu()) {
            const CurrentDevice current(tensors_.front().device());
            const auto start = std::chrono::steady_clock::now();
            kernels(stream_);
            launching_ += (std::chrono::steady_clock::now() - start).count();
        } else if (course::is_cpu_stand_in()) {
            const RegisteredMemory registered(tensors_);
            kernels(cudaStream_t{});
        } else {
            reference();
        }
    }

    // Nanoseconds that the days' own functions have taken, of all calls on a GPU so far: their
    // checks and their launches, which do not wait for the kernels. What is more of a call is
    // Python's and ours.
    static std::int64_t launching() { return launching_; }

  private:
    void check() const;

    inline static std::atomic<std::int64_t> launching_{0};
    Range range_;
    cudaStream_t stream_;
    course::DeviceBuffer<std::byte> of_the_stand_in_;
    std::deque<Tensor> tensors_;  // stays where it is when more are added
};

}  // namespace course_python
