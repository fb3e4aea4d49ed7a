// Lanes without a row return before the shuffles of their warp.
// exercise: day35/csr_vector
// expect: called in [^ ]*day35_spmv/spmv.cuh:\d+: this thread has ended, but lanes 0x\w+ of its warp wait for it in __shfl_xor_sync with mask 0xffffffff
template <int kLanes, class O>
__global__ void csr_vector_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread() / kLanes;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    if (row >= a.rows) return;
    float sum = 0;
    for (O i = a.row_start[row] + lane; i < a.row_start[row + 1]; i += kLanes)
        sum += a.values[i] * x[a.cols[i]];
    sum = sum_of_lanes<kLanes>(sum);
    if (lane == 0) y[row] = sum;
}
