// The threads read coefficients that others may not have stored yet.
// exercise: day03/barrier
// expect: is a barrier missing
__device__ void load_coefficients(const float* coefficients, float* c) {
    c[threadIdx.x] = coefficients[threadIdx.x];
}
