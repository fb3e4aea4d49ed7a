// A macro changes the type in all headers behind it.
// exercise: day01/one_per_element
// expect: were overwritten
#define float double
__global__ void add_one_per_element(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] - b[i];
}
