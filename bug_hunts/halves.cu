// Bug hunt "halves": heat spreads up and down in a plate, two steps, each half in a stream of its
// own.
//
//   In a step, each cell becomes the mean of itself and the ones above and below it; the first row
//   and the last one keep their values. out is in, two steps later.
//
//   ./course run bug_hunts --only halves
#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 128;

// Rows of the plate. The first row of `cells` is row `first` of the plate.
template <class T>
struct Part {
    DeviceMatrix<T> cells;
    std::size_t first;
};

// Idea: a step, for a row of the plate per block of the grid's x, from row `begin` on. `plate` is
// the number of all rows.
__global__ void heat_rows(Part<const float> from, Part<float> to, std::size_t begin, std::size_t plate) {
    const std::size_t row = begin + blockIdx.x;
    const std::size_t col = blockIdx.y * std::size_t{kBlock} + threadIdx.x;
    if (col >= to.cells.cols()) return;
    const std::size_t at = row - from.first;
    float value = from.cells(at, col);
    if (row > 0 && row + 1 < plate)
        value = (from.cells(at - 1, col) + value + from.cells(at + 1, col)) / 3.0f;
    to.cells(row - to.first, col) = value;
}

// The second stream, and events: made once.
struct Side {
    Side() {
        CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (cudaEvent_t* event : {&begun, &sent_down, &sent_up, &done})
            CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    cudaStream_t stream = nullptr;
    cudaEvent_t begun = nullptr;
    cudaEvent_t sent_down = nullptr;
    cudaEvent_t sent_up = nullptr;
    cudaEvent_t done = nullptr;
};

}  // namespace

void halves(DeviceMatrix<const float> in, DeviceMatrix<float> out, cudaStream_t stream) {
    require_shape("halves", "out", out, {in.rows(), in.cols()});
    require_apart("halves", in, out);
    const std::size_t rows = in.rows();
    const std::size_t cols = in.cols();
    const std::size_t cut = rows / 2;  // the first row of the lower half
    if (rows == 0 || cols == 0) return;
    static const Side side;

    // Between the steps, each half has its own rows, and one of the other half's beside them.
    float* between = nullptr;
    CUDA_CHECK(cudaMallocAsync(&between, (rows + 2) * cols * sizeof(float), stream));
    const auto all = DeviceSpan<float>::from_device_pointer(between, (rows + 2) * cols);
    const Part<float> upper{{all.subspan(0, (cut + 1) * cols), cut + 1, cols}, 0};
    const std::size_t above_cut = cut == 0 ? 0 : cut - 1;
    const Part<float> lower{
        {all.subspan((cut + 1) * cols, (rows - above_cut) * cols), rows - above_cut, cols}, above_cut};
    const auto step = [&](Part<const float> from, Part<float> to, std::size_t begin, std::size_t end,
                          cudaStream_t queue) {
        if (begin == end) return;
        const dim3 blocks(course::blocks_for(end - begin, 1), course::blocks_for(cols, kBlock));
        heat_rows<<<blocks, kBlock, 0, queue>>>(from, to, begin, rows);
        CUDA_CHECK_LAUNCH();
    };
    const auto read = [](const Part<float>& part) { return Part<const float>{part.cells, part.first}; };

    CUDA_CHECK(cudaEventRecord(side.begun, stream));
    CUDA_CHECK(cudaStreamWaitEvent(side.stream, side.begun));
    step({in, 0}, upper, 0, cut, stream);
    step({in, 0}, lower, cut, rows, side.stream);

    // The rows at the cut, each to the other half.
    if (cut > 0) {
        const std::size_t bytes = cols * sizeof(float);
        const float* const last_upper = upper.cells.data() + (cut - 1) * cols;
        const float* const first_lower = lower.cells.data() + cols;
        CUDA_CHECK(cudaMemcpyAsync(lower.cells.data(), last_upper, bytes, cudaMemcpyDefault, stream));
        CUDA_CHECK(cudaEventRecord(side.sent_down, stream));
        CUDA_CHECK(cudaMemcpyAsync(upper.cells.data() + cut * cols, first_lower, bytes, cudaMemcpyDefault,
                                   side.stream));
        CUDA_CHECK(cudaEventRecord(side.sent_up, side.stream));
        CUDA_CHECK(cudaStreamWaitEvent(side.stream, side.sent_down));
        CUDA_CHECK(cudaStreamWaitEvent(stream, side.sent_up));
    }

    step(read(upper), {out, 0}, 0, cut, stream);
    step(read(lower), {out, 0}, cut, rows, side.stream);
    CUDA_CHECK(cudaEventRecord(side.done, side.stream));
    CUDA_CHECK(cudaStreamWaitEvent(stream, side.done));
    CUDA_CHECK(cudaFreeAsync(between, stream));
}

}  // namespace hunts
