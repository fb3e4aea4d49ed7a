#include "mixture_of_experts_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <cstdint>
#include <memory>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/check_cublas.hpp"

namespace day27 {

std::string why_no_cublas() {
    return "";
}

namespace {

std::shared_ptr<cublasContext> make_handle() {
    cublasHandle_t raw = nullptr;
    CUBLAS_CHECK(cublasCreate(&raw));
    return {raw, cublasDestroy};
}

// What the calls need, made once.
struct Sorted {
    Sorted(const Layer& layer, const Routing& routing)
        : rows(layer.shape.pairs() * layer.shape.hidden),
          place(std::span<const int>(routing.place)),
          gate(layer.shape.pairs()),
          result(layer.shape.pairs() * layer.shape.width) {
        const std::vector<float> gates(routing.gate.begin(), routing.gate.end());
        gate = course::DeviceBuffer<float>(std::span<const float>(gates));
        const std::size_t hidden = layer.shape.hidden;
        for (std::size_t at = 0; at < routing.pair_at.size(); ++at) {
            const std::size_t token = static_cast<std::size_t>(routing.pair_at[at]) / layer.shape.chosen;
            CUDA_CHECK(cudaMemcpyAsync(rows.data() + at * hidden, layer.x.data() + token * hidden,
                                       hidden * sizeof(float), cudaMemcpyDeviceToDevice));
        }
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    course::DeviceBuffer<float> rows;
    course::DeviceBuffer<int> place;
    course::DeviceBuffer<float> gate;
    course::DeviceBuffer<float> result;
};

}  // namespace

std::function<void(cudaStream_t)> make_cublas(const Layer& layer, std::span<const float> logits) {
    const Routing routing = route_on_cpu(layer.shape, logits);
    const auto sorted = std::make_shared<Sorted>(layer, routing);
    return [=, handle = make_handle()](cudaStream_t stream) {
        const Shape& shape = layer.shape;
        const auto width = static_cast<std::int64_t>(shape.width);
        const auto hidden = static_cast<std::int64_t>(shape.hidden);
        const float alpha = 1;
        const float beta = 0;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        // cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T =
        // W^T X^T.
        for (std::size_t expert = 0; expert < shape.experts; ++expert) {
            const auto first = static_cast<std::size_t>(routing.starts[expert]);
            const auto rows =
                static_cast<std::int64_t>(routing.starts[expert + 1]) - static_cast<std::int64_t>(first);
            if (rows == 0) continue;
            CUBLAS_CHECK(cublasSgemm_64(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, width, rows, hidden, &alpha,
                                        layer.weights.data() + expert * shape.hidden * shape.width, width,
                                        sorted->rows.data() + first * shape.hidden, hidden, &beta,
                                        sorted->result.data() + first * shape.width, width));
        }
        combine_results(shape, sorted->gate.data(), sorted->place.data(), sorted->result.data(),
                        layer.out.data(), stream);
    };
}

}  // namespace day27

#else

namespace day27 {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

std::function<void(cudaStream_t)> make_cublas(const Layer&, std::span<const float>) {
    return {};
}

}  // namespace day27

#endif
