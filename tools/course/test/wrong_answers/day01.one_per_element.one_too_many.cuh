// One element too many. The program's usual sizes are multiples of a block: only the small one shows it.
// exercise: day01/one_per_element
// inspect: yes
// expect: day01_vector_add/vector_add.cuh:[0-9]+: read of 4 bytes .* past its end
__global__ void add_one_per_element(const float* a, const float* b, float* c, std::size_t n) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i <= n) c[i] = a[i] + b[i];
}
