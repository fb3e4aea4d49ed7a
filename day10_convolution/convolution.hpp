// Every value of an image becomes a weighted sum of its neighbours: the host API of day 10. No
// kernels here.
//
//     out(y, x) = sum over dy, dx of  weight(dy, dx) * in(y + dy - rows / 2, x + dx - cols / 2)
//
// for a filter of rows x cols weights, both odd. PMPP chapter 7 calls this convolution, and so does
// deep learning; in mathematics it is correlation, and convolution rotates the filter by 180
// degrees first. cv::filter2D does it as we do. For filters that a rotation leaves the same, such
// as the Gaussian, there is no difference.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "border.hpp"
#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"

namespace day10 {

inline constexpr BorderKind kBorderKinds[] = {BorderKind::kReplicate, BorderKind::kReflect,
                                              BorderKind::kConstant, BorderKind::kWrap};

// "replicate", "reflect", "constant", "wrap"; and back, with std::invalid_argument for any other
// name.
std::string_view name(BorderKind kind);
BorderKind border_named(std::string_view name);

// An image on the device: rows x cols pixels of `channels` values each, the values of a pixel
// adjacent (RGBRGB...). Row r starts r * pitch values after the first, pitch >= cols * channels.
template <class T>
class DevicePicture {
  public:
    DevicePicture(course::DeviceSpan<T> span, std::size_t rows, std::size_t cols, std::size_t channels,
                  std::size_t pitch)
        : values_(span, rows, cols * channels, pitch), cols_(cols), channels_(channels) {}

    DevicePicture(course::DeviceSpan<T> span, std::size_t rows, std::size_t cols, std::size_t channels)
        : DevicePicture(span, rows, cols, channels, cols * channels) {}

    template <class Writable>
    requires(std::is_same_v<T, const Writable> && !std::is_const_v<Writable>)
        DevicePicture(const DevicePicture<Writable>& other)
        : values_(other.values()), cols_(other.cols()), channels_(other.channels()) {}

    course::DeviceMatrix<T> values() const { return values_; }  // rows x (cols * channels)
    std::size_t rows() const { return values_.rows(); }
    std::size_t cols() const { return cols_; }
    std::size_t channels() const { return channels_; }
    std::size_t pitch() const { return values_.leading_dimension(); }

  private:
    course::DeviceMatrix<T> values_;
    std::size_t cols_;
    std::size_t channels_;
};

// A filter of odd height and width, on the host and on the device. It must live until the work
// queued with it is done.
class Filter {
  public:
    // `weights` row by row. Throws std::invalid_argument unless rows and cols are odd and weights
    // are rows * cols.
    static Filter general(std::size_t rows, std::size_t cols, std::vector<float> weights);

    // weight(dy, dx) = column[dy] * row[dx]: two short filters replace a large one.
    static Filter separable(std::vector<float> column, std::vector<float> row);

    std::size_t rows() const { return rows_; }
    std::size_t cols() const { return cols_; }
    bool is_separable() const { return !row_.empty(); }

    const std::vector<float>& weights() const { return weights_; }
    const std::vector<float>& column() const { return column_; }  // empty if not separable
    const std::vector<float>& row() const { return row_; }

    // The exact weight: for a separable filter the product before it is rounded to float.
    double weight(std::size_t dy, std::size_t dx) const;

    const float* device_weights() const { return on_device_.data(); }
    const float* device_column() const { return on_device_.data() + rows_ * cols_; }
    const float* device_row() const { return device_column() + rows_; }

  private:
    Filter(std::size_t rows, std::size_t cols, std::vector<float> weights, std::vector<float> column,
           std::vector<float> row);

    std::size_t rows_;
    std::size_t cols_;
    std::vector<float> weights_;
    std::vector<float> column_;
    std::vector<float> row_;
    course::DeviceBuffer<float> on_device_;  // weights, column, row
};

// `size` samples of the normal density about the middle one, divided by their sum.
// Throws std::invalid_argument unless size is odd, and sigma finite and > 0.
std::vector<float> gaussian_weights(std::size_t size, double sigma);

// The blur: gaussian_weights in both directions.
Filter gaussian_filter(std::size_t size, double sigma);

// The odd size that reaches 3 sigma to either side; what lies beyond is 0.3 % of the weight.
std::size_t gaussian_size(double sigma);

// What a constraint and a count of bytes depend on.
struct Problem {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t channels = 1;
    std::size_t filter_rows = 1;
    std::size_t filter_cols = 1;
    bool separable = false;
};

// Queues the work on `stream`. T is float or std::uint8_t; sums are floats, and for std::uint8_t
// they are rounded to the nearest integer (to the even one of two equally near) and clamped to
// 0..255. Both images: the same shape, 1 or 3 channels, less than 2^30 rows and values in a row,
// pitches less than 2^32; 0 is legal. `out` must not overlap `in`, because threads read the inputs
// of others. `workspace`: rows * cols * channels floats for the versions with two passes, without
// overlap with `in` and `out`; other versions do not use it. Filters have at most 2^30 weights.
// constant_filter, shared_halo and cached_halo share one buffer for the filter, so use them on one
// stream at a time. Throws std::invalid_argument for anything else and where cannot_run() has a
// reason, CudaError when a launch fails.
template <class T>
using Launcher = void (*)(DevicePicture<const T> in, DevicePicture<T> out, const Filter& filter,
                          Border border, course::DeviceSpan<float> workspace, cudaStream_t stream);

// The versions, slow to fast.
template <class T>
using Convolution = course::Version<Launcher<T>, Problem>;
template <class T>
std::span<const Convolution<T>> versions();

// The same on the CPU: plain loops over all its cores, in double. `magnitude`: the sum of |weight * value|.
struct Expected {
    std::vector<double> value;  // before any rounding to T; rows * cols * channels of them
    std::vector<double> magnitude;
};
template <class T>
Expected convolve_on_cpu(std::span<const T> in, std::size_t rows, std::size_t cols, std::size_t channels,
                         const Filter& filter, Border border);

}  // namespace day10
