// Exercises on convolution in three dimensions: the basic kernel, the filter in constant memory,
// and a tile in shared memory. 7.8 to 7.10 of both editions.
//
//   ./course run docs/answers/convolution_3d.cu
//   ./course inspect docs/answers/convolution_3d.cu         what each of them loads
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kX = 21, kY = 13, kZ = 9;
constexpr int kRadius = 1, kFilter = 2 * kRadius + 1, kWeights = kFilter * kFilter * kFilter;
constexpr int kIn = 8, kOut = kIn - 2 * kRadius;

__constant__ float constant_filter[kWeights];

__host__ __device__ inline bool is_inside(int x, int y, int z) {
    return x >= 0 && x < kX && y >= 0 && y < kY && z >= 0 && z < kZ;
}
__host__ __device__ inline int index_of(int x, int y, int z) {
    return (z * kY + y) * kX + x;
}

// The sum at (x, y, z). Ghost cells count as 0.
__host__ __device__ inline float sum_at(const float* in, const float* filter, int x, int y, int z) {
    float sum = 0.0f;
    for (int i = 0; i < kWeights; ++i) {
        const int from_x = x - kRadius + i % kFilter, from_y = y - kRadius + i / kFilter % kFilter;
        const int from_z = z - kRadius + i / (kFilter * kFilter);
        if (is_inside(from_x, from_y, from_z)) sum += filter[i] * in[index_of(from_x, from_y, from_z)];
    }
    return sum;
}

__global__ void basic(const float* in, const float* filter, float* out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (is_inside(x, y, z)) out[index_of(x, y, z)] = sum_at(in, filter, x, y, z);
}

__global__ void with_constant_filter(const float* in, float* out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (is_inside(x, y, z)) out[index_of(x, y, z)] = sum_at(in, constant_filter, x, y, z);
}

// A block has a thread for each cell of the input tile; those of its surface only load.
__global__ void tiled(const float* in, float* out) {
    __shared__ float tile[kIn][kIn][kIn];
    const int tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z;
    const int x = static_cast<int>(blockIdx.x) * kOut + tx - kRadius;
    const int y = static_cast<int>(blockIdx.y) * kOut + ty - kRadius;
    const int z = static_cast<int>(blockIdx.z) * kOut + tz - kRadius;
    tile[tz][ty][tx] = is_inside(x, y, z) ? in[index_of(x, y, z)] : 0.0f;
    __syncthreads();
    const auto is_inner = [](int t) { return t >= kRadius && t < kIn - kRadius; };
    if (!is_inner(tx) || !is_inner(ty) || !is_inner(tz) || !is_inside(x, y, z)) return;
    float sum = 0.0f;
    for (int dz = 0; dz < kFilter; ++dz)
        for (int dy = 0; dy < kFilter; ++dy)
            for (int dx = 0; dx < kFilter; ++dx)
                sum += constant_filter[(dz * kFilter + dy) * kFilter + dx] *
                       tile[tz - kRadius + dz][ty - kRadius + dy][tx - kRadius + dx];
    out[index_of(x, y, z)] = sum;
}

int main() {
    constexpr int kCells = kX * kY * kZ;
    float* values = nullptr;
    cudaMallocManaged(&values, (4 * kCells + kWeights) * sizeof(float));
    float *in = values, *filter = in + kCells, *out = filter + kWeights;
    // Small whole numbers: every sum is exact.
    for (int i = 0; i < kCells; ++i)
        in[i] = static_cast<float>(i * 5 % 11);
    for (int i = 0; i < kWeights; ++i)
        filter[i] = static_cast<float>(i % 4);
    cudaMemcpyToSymbol(constant_filter, filter, sizeof(constant_filter));
    const auto blocks = [](int cells, int of_block) { return (cells + of_block - 1) / of_block; };
    const dim3 block(8, 8, 4), grid(blocks(kX, 8), blocks(kY, 8), blocks(kZ, 4));
    basic<<<grid, block>>>(in, filter, out);
    with_constant_filter<<<grid, block>>>(in, out + kCells);
    tiled<<<dim3(blocks(kX, kOut), blocks(kY, kOut), blocks(kZ, kOut)), dim3(kIn, kIn, kIn)>>>(
        in, out + 2 * kCells);
    const cudaError_t error = cudaDeviceSynchronize();
    int wrong[3] = {};
    for (int z = 0; z < kZ; ++z)
        for (int y = 0; y < kY; ++y)
            for (int x = 0; x < kX; ++x)
                for (int kernel = 0; kernel < 3; ++kernel)
                    wrong[kernel] += out[kernel * kCells + index_of(x, y, z)] != sum_at(in, filter, x, y, z);
    std::printf("%s; of %d cells wrong: basic %d, constant filter %d, tiled %d\n", cudaGetErrorString(error),
                kCells, wrong[0], wrong[1], wrong[2]);
    return error == cudaSuccess && wrong[0] + wrong[1] + wrong[2] == 0 ? 0 : 1;
}
