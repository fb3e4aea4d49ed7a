// A thread too many has a row.
// exercise: day35/csr_scalar
// expect: thread \(\d+,0,0\): illegal access to .*spmv.cuh:\d+
template <class O>
__global__ void csr_scalar_kernel(CsrView<O> a, const float* x, float* y) {
    const Offset row = global_thread();
    if (row > a.rows) return;
    float sum = 0;
    for (O i = a.row_start[row]; i < a.row_start[row + 1]; ++i)
        sum += a.values[i] * x[a.cols[i]];
    y[row] = sum;
}
