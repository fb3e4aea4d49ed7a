// An index out of range, at a line that is said to be the test's.
// exercise: day01/one_per_element
// expect: illegal access|past its end|guard
// inspect: yes
__global__ void add_one_per_element(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
#line 1 "vector_add_test.cpp"
    if (i <= n) c[i] = a[i] + b[i];
}
