// Bug hunt "details": what a picture has and its blurred copy does not have. This file compiles,
// looks right, and is wrong. Find the place.
//
//   out = in - blur(blur(in))
//
// A blur makes of each pixel the mean of itself and the two beside it; the first pixel and the last
// one of a row keep their values.
//
//   ./course check bug_hunts/details     what goes wrong?
//   ./course hint bug_hunts/details
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;

// A matrix with its memory, which is from the device's pool and goes back in the order of the
// stream: no path through the program forgets it.
class Matrix {
  public:
    Matrix(std::size_t rows, std::size_t cols, cudaStream_t stream)
        : rows_(rows), cols_(cols), stream_(stream) {
        CUDA_CHECK(cudaMallocAsync(&data_, rows * cols * sizeof(float), stream));
    }
    ~Matrix() { static_cast<void>(cudaFreeAsync(data_, stream_)); }
    __device__ float& operator()(std::size_t row, std::size_t col) const { return data_[row * cols_ + col]; }
    DeviceMatrix<float> view() const {
        return {DeviceSpan<float>::from_device_pointer(data_, rows_ * cols_), rows_, cols_};
    }

  private:
    float* data_ = nullptr;
    std::size_t rows_;
    std::size_t cols_;
    cudaStream_t stream_;
};

__global__ void blur(DeviceMatrix<const float> from, Matrix to) {
    const std::size_t row = blockIdx.x;
    const std::size_t col = blockIdx.y * std::size_t{kBlock} + threadIdx.x;
    if (col >= from.cols()) return;
    const bool has_both = col > 0 && col + 1 < from.cols();
    to(row, col) =
        has_both ? (from(row, col - 1) + from(row, col) + from(row, col + 1)) / 3.0f : from(row, col);
}

__global__ void subtract(DeviceMatrix<const float> in, DeviceMatrix<const float> blurred,
                         DeviceMatrix<float> out) {
    const std::size_t row = blockIdx.x;
    const std::size_t col = blockIdx.y * std::size_t{kBlock} + threadIdx.x;
    if (col < in.cols()) out(row, col) = in(row, col) - blurred(row, col);
}

}  // namespace

void details(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    require_shape("details", "out", out, {in.rows(), in.cols()});
    require_apart("details", in, out);
    const unsigned rows = course::blocks_for(in.rows(), 1);
    if (rows == 0 || in.cols() == 0) return;
    const dim3 grid(rows, course::blocks_for(in.cols(), kBlock));
    const Matrix once(in.rows(), in.cols(), stream);
    blur<<<grid, kBlock, 0, stream>>>(in, once);
    CUDA_CHECK_LAUNCH();
    const Matrix twice(in.rows(), in.cols(), stream);
    blur<<<grid, kBlock, 0, stream>>>(once.view(), twice);
    CUDA_CHECK_LAUNCH();
    subtract<<<grid, kBlock, 0, stream>>>(in, twice.view(), out);
    CUDA_CHECK_LAUNCH();
}

}  // namespace hunts
