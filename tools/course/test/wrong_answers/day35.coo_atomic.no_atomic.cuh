// The addition is not atomic.
// exercise: day35/coo_atomic
// expect: spmv.cuh:\d+.*: byte \d+ of the allocation of \d+ bytes: .* in no order
// inspect: yes
__global__ void coo_atomic_kernel(CooView a, const float* x, float* y) {
    const Offset i = global_thread();
    if (i < a.entries) y[a.rows[i]] += a.values[i] * x[a.cols[i]];
}
