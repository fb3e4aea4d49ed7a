// Arguments that are no tensors, and what several functions of the extension share.
#pragma once

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/bench/version.hpp"
#include "common/check/check.hpp"
#include "common/device/device_view.hpp"
#include "common/device/operands.hpp"
#include "tensor.hpp"

namespace course_python {

template <class Value, std::size_t kCount>
Value choose(const char* argument, const std::string& given,
             const std::array<std::pair<const char*, Value>, kCount>& choices) {
    std::string expected;
    for (const auto& [name, value] : choices) {
        if (given == name) return value;
        expected += fmt::format("{}'{}'", expected.empty() ? "" : " or ", name);
    }
    throw std::invalid_argument(fmt::format("{} is '{}'; expected {}", argument, given, expected));
}

// function(T()) with the T that the tensor's elements are.
template <class Function>
void with_float_type(const Tensor& tensor, const Function& function) {
    if (tensor.type() == type_name<float>()) return function(float{});
    if (tensor.type() == type_name<__half>()) return function(__half{});
    tensor.refuse_type("float32 or float16");
}

// The first of the versions that can run the problem, of those named: the last resort runs any.
template <class Versions, class Problem>
const auto& first_that_runs(const Versions& versions, const Problem& problem,
                            std::initializer_list<const char*> names) {
    for (const char* name : names) {
        const auto& version = course::find_version(versions, name);
        if (version.cannot_run(problem).empty()) return version;
    }
    return course::find_version(versions, *(names.end() - 1));
}

// The number of the capture in a CUDA graph that the stream is in, or 0.
inline unsigned long long capture_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    // The legacy default stream cannot be captured.
    if (stream != nullptr) CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, &id));
    return status == cudaStreamCaptureStatusActive ? id : 0;
}

// As long as it lives, this thread may allocate memory while a stream is captured.
class AllocationIsAllowed {
  public:
#ifdef CUDA_ON_CPU
    AllocationIsAllowed() = default;
#else
    AllocationIsAllowed() {
        CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode_));
    }
    ~AllocationIsAllowed() {
        static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
    }
#endif
    AllocationIsAllowed(const AllocationIsAllowed&) = delete;
    AllocationIsAllowed& operator=(const AllocationIsAllowed&) = delete;

  private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Memory for intermediate results that a day allocates itself: made once for each device, stream
// and kind, and kept, because cudaMalloc waits for the device. It grows with the largest problem.
// A stream does one thing after the other, so that two of its calls can share it. A graph may be
// replayed at any time and on any stream: what its calls use is its own, and is never freed.
template <class Workspace, class Kind = int>
class Workspaces {
  public:
    // use(workspace), which queues work on `stream` of the current device. `fits(workspace)`: is it
    // large enough; make(): another one.
    template <class Fits, class Make, class Use>
    void with(cudaStream_t stream, const Kind& kind, const Fits& fits, const Make& make, const Use& use) {
        int device = 0;
        CUDA_CHECK(cudaGetDevice(&device));
        const unsigned long long capture = capture_of(stream);
        const std::lock_guard one_at_a_time(mutex_);
        std::vector<std::unique_ptr<Workspace>>& kept = kept_[{device, stream, capture, kind}];
        if (kept.empty() || !fits(*kept.back())) {
            if (capture == 0) kept.clear();
            const AllocationIsAllowed allowed;
            kept.push_back(make());
        }
        use(*kept.back());
    }

  private:
    using Key = std::tuple<int, cudaStream_t, unsigned long long, Kind>;

    std::mutex mutex_;
    std::map<Key, std::vector<std::unique_ptr<Workspace>>> kept_;
};

// --- Tensors of the CPU, in builds for a GPU, for the references ----------------------------------

template <class T>
std::span<T> host(course::DeviceSpan<T> span) {
    return {span.data(), span.size()};
}

// Without the gaps between rows.
template <class T>
std::vector<std::remove_const_t<T>> packed_rows(course::DeviceMatrix<T> matrix) {
    std::vector<std::remove_const_t<T>> values;
    values.reserve(matrix.rows() * matrix.cols());
    for (std::size_t row = 0; row < matrix.rows(); ++row) {
        const T* const begin = matrix.data() + row * matrix.leading_dimension();
        values.insert(values.end(), begin, begin + matrix.cols());
    }
    return values;
}

template <class From, class T>
void write_rows(std::span<const From> values, course::DeviceMatrix<T> matrix) {
    for (std::size_t row = 0; row < matrix.rows(); ++row)
        for (std::size_t col = 0; col < matrix.cols(); ++col)
            matrix.data()[row * matrix.leading_dimension() + col] =
                static_cast<T>(static_cast<float>(values[row * matrix.cols() + col]));
}

}  // namespace course_python
