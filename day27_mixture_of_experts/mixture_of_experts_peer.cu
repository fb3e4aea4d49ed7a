#include "mixture_of_experts_peer.hpp"

#ifdef COURSE_HAS_CUDA_LIBRARIES

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/check_cublas.hpp"
#include "common/device/grid.hpp"

// The grouped call came with CUDA 12.5.
#define COURSE_HAS_GROUPED_CUBLAS (CUBLAS_VER_MAJOR * 100 + CUBLAS_VER_MINOR >= 1205)

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

// What the calls need, made once. T: of the rows; Result: of the products.
template <class T, class Result>
struct Sorted {
    Sorted(const LayerOf<T>& layer, const Routing& routing)
        : rows(layer.shape.pairs() * layer.shape.hidden),
          place(std::span<const int>(routing.place)),
          result(layer.shape.pairs() * layer.shape.width) {
        const std::vector<float> gates(routing.gate.begin(), routing.gate.end());
        gate = course::DeviceBuffer<float>(std::span<const float>(gates));
        const std::size_t hidden = layer.shape.hidden;
        for (std::size_t at = 0; at < routing.pair_at.size(); ++at) {
            const std::size_t token = static_cast<std::size_t>(routing.pair_at[at]) / layer.shape.chosen;
            CUDA_CHECK(cudaMemcpyAsync(rows.data() + at * hidden, layer.x.data() + token * hidden,
                                       hidden * sizeof(T), cudaMemcpyDeviceToDevice));
        }
        CUDA_CHECK(cudaDeviceSynchronize());
    }

    course::DeviceBuffer<T> rows;
    course::DeviceBuffer<int> place;
    course::DeviceBuffer<float> gate;
    course::DeviceBuffer<Result> result;
};

// An expert that has tokens: X, W and the products C = X W, all row-major.
template <class T, class Result>
struct Product {
    std::int64_t rows;
    const T* x;
    const T* w;
    Result* c;
};

template <class T, class Result>
std::vector<Product<T, Result>> products_of(const LayerOf<T>& layer, const Routing& routing,
                                            Sorted<T, Result>& sorted) {
    const Shape& shape = layer.shape;
    std::vector<Product<T, Result>> products;
    for (std::size_t expert = 0; expert < shape.experts; ++expert) {
        const auto first = static_cast<std::size_t>(routing.starts[expert]);
        const auto rows = static_cast<std::size_t>(routing.starts[expert + 1]) - first;
        if (rows == 0) continue;
        products.push_back({static_cast<std::int64_t>(rows), sorted.rows.data() + first * shape.hidden,
                            layer.weights.data() + expert * shape.hidden * shape.width,
                            sorted.result.data() + first * shape.width});
    }
    return products;
}

}  // namespace

// cuBLAS is column-major, and a row-major matrix read by columns is its transpose: C^T = W^T X^T.

template <class T>
std::function<void(cudaStream_t)> make_cublas(const LayerOf<T>& layer, std::span<const float> logits) {
    constexpr cudaDataType_t kType = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;
    const Routing routing = route_on_cpu(layer.shape, logits);
    const auto sorted = std::make_shared<Sorted<T, float>>(layer, routing);
    const auto products = products_of(layer, routing, *sorted);
    return [=, handle = make_handle()](cudaStream_t stream) {
        const auto width = static_cast<std::int64_t>(layer.shape.width);
        const auto hidden = static_cast<std::int64_t>(layer.shape.hidden);
        const float alpha = 1;
        const float beta = 0;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        for (const auto& [rows, x, w, c] : products) {
            if constexpr (std::is_same_v<T, float>) {
                CUBLAS_CHECK(cublasSgemm_64(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, width, rows, hidden,
                                            &alpha, w, width, x, hidden, &beta, c, width));
            } else {
                CUBLAS_CHECK(cublasGemmEx_64(handle.get(), CUBLAS_OP_N, CUBLAS_OP_N, width, rows, hidden,
                                             &alpha, w, kType, width, x, kType, hidden, &beta, c, CUDA_R_32F,
                                             width, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
            }
        }
        combine_results(layer.shape, sorted->gate.data(), sorted->place.data(), sorted->result.data(),
                        layer.out.data(), stream);
    };
}

template std::function<void(cudaStream_t)> make_cublas(const LayerOf<float>&, std::span<const float>);
template std::function<void(cudaStream_t)> make_cublas(const LayerOf<__nv_bfloat16>&, std::span<const float>);

#if COURSE_HAS_GROUPED_CUBLAS

namespace {

constexpr int kCombineBlock = 256;

// As the lesson's combine, of products in BF16: a thread per result.
__global__ void combine_bfloat16(const float* gate, const int* place, const __nv_bfloat16* result, int width,
                                 int chosen, float* out) {
    const std::size_t token = blockIdx.x;
    const auto col = static_cast<int>(blockIdx.y * kCombineBlock + threadIdx.x);
    if (col >= width) return;
    float sum = 0;
    for (int j = 0; j < chosen; ++j) {
        const std::size_t pair = token * chosen + j;
        const std::size_t row = place[pair];
        sum += gate[pair] * __bfloat162float(result[row * width + col]);
    }
    out[token * width + col] = sum;
}

// The arguments of the call: a group for each product. Its numbers are in host memory, its
// matrices' addresses in device memory.
struct Groups {
    using Type = __nv_bfloat16;

    Groups(const Shape& shape, const std::vector<Product<Type, Type>>& products)
        : count(static_cast<std::int64_t>(products.size())),
          none(products.size(), CUBLAS_OP_N),
          one(products.size(), 1),
          width(products.size(), static_cast<std::int64_t>(shape.width)),
          hidden(products.size(), static_cast<std::int64_t>(shape.hidden)),
          alpha(products.size(), 1.0f),
          beta(products.size(), 0.0f) {
        std::vector<const void*> xs, ws;
        std::vector<void*> cs;
        for (const auto& product : products) {
            rows.push_back(product.rows);
            xs.push_back(product.x);
            ws.push_back(product.w);
            cs.push_back(product.c);
        }
        x = course::DeviceBuffer<const void*>(std::span<const void* const>(xs));
        w = course::DeviceBuffer<const void*>(std::span<const void* const>(ws));
        c = course::DeviceBuffer<void*>(std::span<void* const>(cs));
    }

    std::int64_t count;
    std::vector<cublasOperation_t> none;
    std::vector<std::int64_t> one, width, hidden, rows;
    std::vector<float> alpha, beta;
    course::DeviceBuffer<const void*> x, w;
    course::DeviceBuffer<void*> c;
};

}  // namespace

std::string why_no_grouped_cublas(const Shape& shape) {
    if (shape.hidden % 8 == 0 && shape.width % 8 == 0) return "";
    return "cuBLAS's grouped call needs matrices that start at a multiple of 16 bytes";
}

std::function<void(cudaStream_t)> make_grouped_cublas(const LayerOf<__nv_bfloat16>& layer,
                                                      std::span<const float> logits) {
    const Routing routing = route_on_cpu(layer.shape, logits);
    const auto sorted = std::make_shared<Sorted<__nv_bfloat16, __nv_bfloat16>>(layer, routing);
    const auto groups = std::make_shared<const Groups>(layer.shape, products_of(layer, routing, *sorted));
    return [=, handle = make_handle()](cudaStream_t stream) {
        const Groups& g = *groups;
        CUBLAS_CHECK(cublasSetStream(handle.get(), stream));
        CUBLAS_CHECK(cublasGemmGroupedBatchedEx_64(
            handle.get(), g.none.data(), g.none.data(), g.width.data(), g.rows.data(), g.hidden.data(),
            g.alpha.data(), g.w.data(), CUDA_R_16BF, g.width.data(), g.x.data(), CUDA_R_16BF, g.hidden.data(),
            g.beta.data(), g.c.data(), CUDA_R_16BF, g.width.data(), g.count, g.one.data(),
            CUBLAS_COMPUTE_32F));
        const auto width = static_cast<int>(layer.shape.width);
        const dim3 grid(static_cast<unsigned>(layer.shape.tokens),
                        static_cast<unsigned>(course::ceil_div(width, kCombineBlock)));
        combine_bfloat16<<<grid, kCombineBlock, 0, stream>>>(
            sorted->gate.data(), sorted->place.data(), sorted->result.data(), width,
            static_cast<int>(layer.shape.chosen), layer.out.data());
        CUDA_CHECK_LAUNCH();
    };
}

#else

std::string why_no_grouped_cublas(const Shape&) {
    return "cuBLAS has a grouped call from CUDA 12.5 on";
}

std::function<void(cudaStream_t)> make_grouped_cublas(const LayerOf<__nv_bfloat16>&, std::span<const float>) {
    return {};
}

#endif

}  // namespace day27

#else

namespace day27 {

std::string why_no_cublas() {
    return "cuBLAS is in builds for a GPU";
}

template <class T>
std::function<void(cudaStream_t)> make_cublas(const LayerOf<T>&, std::span<const float>) {
    return {};
}

template std::function<void(cudaStream_t)> make_cublas(const LayerOf<float>&, std::span<const float>);
template std::function<void(cudaStream_t)> make_cublas(const LayerOf<__nv_bfloat16>&, std::span<const float>);

std::string why_no_grouped_cublas(const Shape&) {
    return why_no_cublas();
}

std::function<void(cudaStream_t)> make_grouped_cublas(const LayerOf<__nv_bfloat16>&, std::span<const float>) {
    return {};
}

}  // namespace day27

#endif
