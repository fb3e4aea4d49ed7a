// An exercise on sparse formats: from COO to CSR by a histogram of the rows, a scan of the counts,
// and atomics that give each element its place. 4th edition 14.3, 5th edition 17.3.
//
//   ./course run docs/answers/coo_to_csr.cu
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kRows = 200, kColumns = 50, kElements = 1000, kBlock = 256;

// counts[row + 1]: after an inclusive scan, starts[row] is where the row begins.
__global__ void count_rows(const int* rows, int n, int* counts) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[rows[i] + 1], 1);
}

// Kogge-Stone, in one block of at least n threads.
__global__ void scan(int* counts, int n) {
    __shared__ int sums[kBlock];
    const int t = threadIdx.x;
    sums[t] = t < n ? counts[t] : 0;
    for (int stride = 1; stride < kBlock; stride *= 2) {
        __syncthreads();
        const int before = t >= stride ? sums[t - stride] : 0;
        __syncthreads();
        sums[t] += before;
    }
    if (t < n) counts[t] = sums[t];
}

// The order within a row is that of the atomics: a CSR matrix allows any.
__global__ void place(const int* rows, const int* columns, const int* values, int n, const int* starts,
                      int* used, int* csr_columns, int* csr_values) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int place = starts[rows[i]] + atomicAdd(&used[rows[i]], 1);
    csr_columns[place] = columns[i];
    csr_values[place] = values[i];
}

int main() {
    static_assert(kRows + 1 <= kBlock, "the scan has one block");
    int* all = nullptr;
    constexpr int kNumbers = 5 * kElements + 2 * (kRows + 1);
    cudaMallocManaged(&all, kNumbers * sizeof(int));
    int *rows = all, *columns = rows + kElements, *values = columns + kElements;
    int *csr_columns = values + kElements, *csr_values = csr_columns + kElements;
    int *starts = csr_values + kElements, *used = starts + kRows + 1;
    for (int i = 0; i < kNumbers; ++i)
        all[i] = 0;
    for (int i = 0; i < kElements; ++i) {
        rows[i] = i * 37 % kRows * (i % 3 != 0);  // a third of them in row 0
        columns[i] = i * 11 % kColumns;
        values[i] = i + 1;
    }
    constexpr int kBlocks = (kElements + kBlock - 1) / kBlock;
    count_rows<<<kBlocks, kBlock>>>(rows, kElements, starts);
    scan<<<1, kBlock>>>(starts, kRows + 1);
    place<<<kBlocks, kBlock>>>(rows, columns, values, kElements, starts, used, csr_columns, csr_values);
    const cudaError_t error = cudaDeviceSynchronize();
    // Each element once, in its row and column: value i + 1 belongs to element i.
    int wrong = starts[kRows] != kElements;
    long long sum = 0;
    for (int row = 0; row < kRows; ++row)
        for (int i = starts[row]; i < starts[row + 1]; ++i) {
            const int element = csr_values[i] - 1;
            sum += csr_values[i];
            wrong += element < 0 || rows[element] != row || columns[element] != csr_columns[i];
        }
    wrong += sum != static_cast<long long>(kElements) * (kElements + 1) / 2;
    std::printf("%s; %d elements in %d rows, row 0 has %d; %d wrong\n", cudaGetErrorString(error), kElements,
                kRows, starts[1], wrong);
    return error == cudaSuccess && wrong == 0 ? 0 : 1;
}
