// Day 34, beyond: host code of the version tensor_cores.
#include <string>

#include "common/check/require.hpp"
#include "common/device/tensor_core_support.hpp"
#include "launch.cuh"
#include "tensor_cores.cuh"

namespace day34 {
namespace {

template <class T>
std::string constraint(const Shape& shape) {
    if (shape.dim % 8 != 0)
        return "needs a dim that is a multiple of 8; this one is " + std::to_string(shape.dim);
    return shape.dim <= 64
               ? course::why_no_tensor_cores(tensor_cores_gradients<T, 64>, sizeof(WarpMemory<T, 64>))
               : course::why_no_tensor_cores(tensor_cores_gradients<T, 128>, sizeof(WarpMemory<T, 128>));
}

template <int D, class T>
void launch_kernels(const Gradient<T>& g, cudaStream_t stream) {
    const RowTermsBuffer rows(g, stream);
    const Extents q = g.q.extents();
    const course::StreamBuffer<float> sums(q.batch * q.heads * rows.terms().padded * D, stream);
    sums.clear();
    launch_tensor_cores_gradients<T, D>(g, rows.terms(), sums.data(), stream);
    launch_round_queries<T, D>(g, rows.terms(), sums.data(), stream);
    CUDA_CHECK_LAUNCH();
}

template <class T>
void launch(const Gradient<T>& g, cudaStream_t stream) {
    if (!check_arguments(g)) return;
    require_aligned_rows(g);
    const std::string reason = constraint<T>({.dim = g.q.extents().dim});
    course::require(reason.empty(), "attention backward: tensor_cores ", reason);
    if (cleared(g, stream)) return;
    if (g.q.dim() <= 64) {
        launch_kernels<64>(g, stream);
    } else {
        launch_kernels<128>(g, stream);
    }
}

}  // namespace

template <class T>
Version<T> tensor_cores() {
    return {"tensor_cores", "products by mma.sync, P and dS in registers", launch<T>, work<T>, constraint<T>};
}
template Version<__half> tensor_cores();
template Version<__nv_bfloat16> tensor_cores();

}  // namespace day34
