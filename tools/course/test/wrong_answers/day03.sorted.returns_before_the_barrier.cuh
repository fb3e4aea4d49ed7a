// Threads without a point return before the barrier in load_coefficients.
// exercise: day03/sorted
// needs: barrier
// expect: barrier
__global__ void sorted_loops(const float* x, const int* terms, const int* order, const float* coefficients,
                             float* y, int n) {
    __shared__ float c[kTerms];
    const int t = blockIdx.x * kBlock + threadIdx.x;
    if (t >= n) return;
    load_coefficients(coefficients, c);
    const int i = order[t];
    y[i] = horner(c, x[i], terms[i]);
}
