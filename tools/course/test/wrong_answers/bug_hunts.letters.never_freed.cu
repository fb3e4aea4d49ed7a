// The memory is never freed.
// exercise: bug_hunts/letters
// expect: bytes of cudaMallocAsync without cudaFreeAsync
// whole file: letters.cu
// Bug hunt "letters": twice the values, sent to another process and received there.
//
//   out = what has arrived = 2 in
//
//   ./course run bug_hunts --only letters
#include <algorithm>

#include "checks.hpp"
#include "common/check/check.hpp"
#include "common/device/grid.hpp"

namespace hunts {
namespace {

constexpr int kBlock = 256;

__global__ void twice(DeviceSpan<const float> in, DeviceSpan<float> out) {
    const std::size_t i = blockIdx.x * std::size_t{kBlock} + threadIdx.x;
    if (i < in.size()) out[i] = 2.0f * in[i];
}

// Pinned memory of the host: the GPU copies to it while the host goes on.
class Box {
  public:
    explicit Box(std::size_t floats) { CUDA_CHECK(cudaMallocHost(&data_, floats * sizeof(float))); }
    ~Box() { static_cast<void>(cudaFreeHost(data_)); }
    Box(const Box&) = delete;
    Box& operator=(const Box&) = delete;
    float* data() const { return data_; }

  private:
    float* data_ = nullptr;
};

// Represents MPI_Send in one process and MPI_Recv in the other one. The host reads the buffer at
// once, without regard to streams.
void send(const float* from, float* to, std::size_t floats) {
    std::copy_n(from, floats, to);
}

}  // namespace

void letters(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require_size("letters", "out", out, in.size());
    require_apart("letters", as_row(in), as_row(out));
    const unsigned blocks = course::blocks_for(in.size(), kBlock);
    if (blocks == 0) return;
    const std::size_t bytes = in.size() * sizeof(float);
    const Box outgoing(in.size());
    const Box incoming(in.size());
    float* results = nullptr;
    CUDA_CHECK(cudaMallocAsync(&results, bytes, stream));

    twice<<<blocks, kBlock, 0, stream>>>(in, DeviceSpan<float>::from_device_pointer(results, in.size()));
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpyAsync(outgoing.data(), results, bytes, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));  // the host may read the buffer
    send(outgoing.data(), incoming.data(), in.size());
    CUDA_CHECK(cudaMemcpyAsync(out.data(), incoming.data(), bytes, cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));  // the boxes may go
}

}  // namespace hunts
