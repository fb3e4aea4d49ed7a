// Exercises on convolutions: results, ghost cells and multiplications. 7.2 and 7.4 to 7.6 of both
// editions.
//
//   ./course run docs/answers/convolutions.cu               5 x 7 elements, a filter of 3 x 5
//   ./course run docs/answers/convolutions.cu -- 9 9 5 5    your own sizes: rows, columns, of the filter, too
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void convolve(const float* in, int n, const float* filter, int radius, float* out) {
    const int i = threadIdx.x;
    float sum = 0.0f;
    for (int k = -radius; k <= radius; ++k)
        if (i + k >= 0 && i + k < n) sum += filter[k + radius] * in[i + k];
    if (i < n) out[i] = sum;
}

// One thread per result: its multiplications, and those of them that have no ghost cell.
__global__ void count(int rows, int columns, int filter_rows, int filter_columns, int* all,
                      int* without_ghosts) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    int inside = 0;
    for (int y = 0; y < filter_rows; ++y)
        for (int x = 0; x < filter_columns; ++x) {
            const int row = i / columns + y - filter_rows / 2, column = i % columns + x - filter_columns / 2;
            inside += row >= 0 && row < rows && column >= 0 && column < columns;
        }
    atomicAdd(all, filter_rows * filter_columns);
    atomicAdd(without_ghosts, inside);
}

// n * m minus r * (r + 1): along one dimension, a filter of m = 2r + 1 on n >= m elements.
int along(int n, int m) {
    return n * m - m / 2 * (m / 2 + 1);
}

bool print_counts(const char* exercise, int rows, int columns, int filter_rows, int filter_columns,
                  int* counts) {
    counts[0] = counts[1] = 0;
    count<<<(rows * columns + 127) / 128, 128>>>(rows, columns, filter_rows, filter_columns, counts,
                                                 counts + 1);
    cudaDeviceSynchronize();
    const int ghosts = (rows + filter_rows - 1) * (columns + filter_columns - 1) - rows * columns;
    std::printf(
        "%s: %d x %d elements, filter %d x %d: %d ghost cells, %d multiplications, %d without those by 0\n",
        exercise, rows, columns, filter_rows, filter_columns, ghosts, counts[0], counts[1]);
    return counts[1] == along(rows, filter_rows) * along(columns, filter_columns);
}

int main(int argc, char** argv) {
    const auto size = [&](int index, int otherwise) {
        return argc > index ? std::atoi(argv[index]) : otherwise;
    };
    const int rows = size(1, 5), columns = size(2, 7), filter_rows = size(3, 3), filter_columns = size(4, 5);
    if (filter_rows % 2 == 0 || filter_columns % 2 == 0 || filter_rows > rows || filter_columns > columns ||
        filter_rows < 1 || filter_columns < 1 || rows > 1000 || columns > 1000) {
        std::fprintf(
            stderr,
            "the sizes are %d x %d and %d x %d; expected a filter with odd sides, no larger than the "
            "elements, and at most 1000 x 1000 of those\n",
            rows, columns, filter_rows, filter_columns);
        return 2;
    }
    float* values = nullptr;
    int* counts = nullptr;
    cudaMallocManaged(&values, 16 * sizeof(float));
    cudaMallocManaged(&counts, 2 * sizeof(int));
    const float in[] = {4, 1, 3, 2, 3, 2, 1, 4};
    for (int i = 0; i < 8; ++i)
        values[i] = in[i];
    convolve<<<1, 32>>>(values, 5, values + 5, 1, values + 8);
    cudaDeviceSynchronize();
    std::printf("7.2:");
    for (int i = 0; i < 5; ++i)
        std::printf(" %g", values[8 + i]);
    std::printf("\n");
    bool all = values[8] == 8 && values[12] == 7;
    all &= print_counts("7.4", 1, columns, 1, filter_columns, counts);
    all &= print_counts("7.5", columns, columns, filter_columns, filter_columns, counts);
    all &= print_counts("7.6", rows, columns, filter_rows, filter_columns, counts);
    return all && cudaGetLastError() == cudaSuccess ? 0 : 1;
}
