// Launchers of operator_scan: argument checks, and how each operator loads and stores its elements.
#include "bulk_lookback.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "operator_scan.cuh"
#include "operator_scan.hpp"

namespace day16 {
namespace {

using course::DeviceSpan;
using course::require;

template <class T, class Out>
void check_input(const char* name, DeviceSpan<const T> in, DeviceSpan<Out> out) {
    require(in.size() == out.size(), "scan: ", name, " has ", in.size(), " elements and out ", out.size(),
            "; expected the same number");
    const bool is_out = static_cast<const void*>(in.data()) == out.data() && sizeof(T) == sizeof(Out);
    require(is_out || !overlap(in, out), "scan: out overlaps ", name,
            "; expected in itself, or memory apart");
}

void check_workspace(std::size_t n, const Workspace& workspace) {
    require(workspace.capacity() >= n, "scan: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of out, ", n);
}

// Whether bulk_operator_scan can be used: on this GPU, and for arrays at these addresses.
bool can_copy_in_bulk(std::size_t n, const Workspace& workspace, auto*... arrays) {
    check_workspace(n, workspace);
    return n > 0 && ((reinterpret_cast<std::uintptr_t>(arrays) % 16 == 0) && ...) &&
           course::why_no_bulk_copies().empty();
}

template <class Op, class Load, class Store>
void launch(Load load, Store store, std::size_t n, Workspace& workspace, cudaStream_t stream) {
    check_workspace(n, workspace);
    if (n == 0) return;
    using Value = typename Op::Value;
    const Published<Value> published{
        .board = {workspace.ticket(), workspace.words(), workspace.words_capacity()},
        .sums = static_cast<Value*>(workspace.values(0)),
        .prefixes = static_cast<Value*>(workspace.values(1))};
    const unsigned grid = course::blocks_for(course::ceil_div<std::size_t>(n, kOperatorTile), 1);
    operator_scan<Op><<<grid, kBlock, 0, stream>>>(load, store, n, published);
    CUDA_CHECK_LAUNCH();
}

struct LoadInteger {
    const std::int64_t* in;
    __device__ std::uint64_t operator()(std::size_t i) const { return static_cast<std::uint64_t>(in[i]); }
};
struct StoreInteger {
    std::int64_t* out;
    __device__ void operator()(std::size_t i, std::uint64_t sum) const {
        out[i] = static_cast<std::int64_t>(sum);
    }
};

struct LoadSegment {
    const unsigned char* begins;
    const float* values;
    __device__ SegmentedSum::Value operator()(std::size_t i) const {
        return {values[i], begins[i] != 0 ? 1U : 0U};
    }
};
struct LoadKey {
    const std::int32_t* keys;
    const float* values;
    __device__ SegmentedSum::Value operator()(std::size_t i) const {
        return {values[i], i > 0 && keys[i] != keys[i - 1] ? 1U : 0U};
    }
};
struct StoreSum {
    float* out;
    __device__ void operator()(std::size_t i, SegmentedSum::Value value) const { out[i] = value.sum; }
};

struct LoadMap {
    const float* factors;
    const float* offsets;
    __device__ Affine::Value operator()(std::size_t i) const { return {factors[i], offsets[i]}; }
};
// x[-1] = 0, so x is the combined map applied to 0.
struct StoreX {
    float* out;
    __device__ void operator()(std::size_t i, Affine::Value map) const { out[i] = map.offset; }
};

}  // namespace

void inclusive_scan(DeviceSpan<const std::int64_t> in, DeviceSpan<std::int64_t> out, Workspace& workspace,
                    cudaStream_t stream) {
    check_input("in", in, out);
    if (can_copy_in_bulk(in.size(), workspace, in.data(), out.data())) {
        launch_bulk_integers(reinterpret_cast<const std::uint64_t*>(in.data()),
                             reinterpret_cast<std::uint64_t*>(out.data()), in.size(), workspace, stream);
        return;
    }
    launch<Sum<std::uint64_t>>(LoadInteger{in.data()}, StoreInteger{out.data()}, in.size(), workspace,
                               stream);
}

void segmented_scan(DeviceSpan<const unsigned char> begins, DeviceSpan<const float> values,
                    DeviceSpan<float> out, Workspace& workspace, cudaStream_t stream) {
    check_input("begins", begins, out);
    check_input("values", values, out);
    launch<SegmentedSum>(LoadSegment{begins.data(), values.data()}, StoreSum{out.data()}, out.size(),
                         workspace, stream);
}

void scan_by_key(DeviceSpan<const std::int32_t> keys, DeviceSpan<const float> values, DeviceSpan<float> out,
                 Workspace& workspace, cudaStream_t stream) {
    require(static_cast<const void*>(keys.data()) != out.data() || keys.empty(),
            "scan: out is keys; expected memory apart, as tiles read the last key of the tile before");
    check_input("keys", keys, out);
    check_input("values", values, out);
    if (can_copy_in_bulk(out.size(), workspace, keys.data(), values.data(), out.data()))
        return launch_bulk_by_key(keys.data(), values.data(), out.data(), out.size(), workspace, stream);
    launch<SegmentedSum>(LoadKey{keys.data(), values.data()}, StoreSum{out.data()}, out.size(), workspace,
                         stream);
}

void solve_recurrence(DeviceSpan<const float> factors, DeviceSpan<const float> offsets, DeviceSpan<float> out,
                      Workspace& workspace, cudaStream_t stream) {
    check_input("factors", factors, out);
    check_input("offsets", offsets, out);
    launch<Affine>(LoadMap{factors.data(), offsets.data()}, StoreX{out.data()}, out.size(), workspace,
                   stream);
}

}  // namespace day16
