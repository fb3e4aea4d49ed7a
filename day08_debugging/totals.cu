// Verdict: uninitialised memory, line 35
//
// Totals: what did each shop sell in a year?
//
//   nvcc totals.cu -o totals && ./totals 3
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

constexpr int kShops = 1000, kMonths = 12;

__global__ void add_month(const int* sales, int* totals) {
    const int shop = blockIdx.x * blockDim.x + threadIdx.x;
    if (shop < kShops) totals[shop] += sales[shop];
}

// The totals of a year in which each shop sold as much every month.
std::vector<int> totals_of_year(const std::vector<int>& monthly_sales) {
    int *sales_d = nullptr, *totals_d = nullptr;
    const std::size_t bytes = kShops * sizeof(int);
    CUDA_CHECK(cudaMalloc(&sales_d, bytes));
    CUDA_CHECK(cudaMalloc(&totals_d, bytes));
    CUDA_CHECK(cudaMemset(totals_d, 0, bytes));
    CUDA_CHECK(cudaMemcpy(sales_d, monthly_sales.data(), bytes, cudaMemcpyHostToDevice));
    for (int month = 0; month < kMonths; ++month) {
        add_month<<<(kShops + 255) / 256, 256>>>(sales_d, totals_d);
        CUDA_CHECK(cudaGetLastError());
    }
    std::vector<int> totals(kShops);
    CUDA_CHECK(cudaMemcpy(totals.data(), totals_d, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(sales_d));
    CUDA_CHECK(cudaFree(totals_d));
    return totals;
}

int main(int argc, char** argv) {
    const int years = argc > 1 ? atoi(argv[1]) : 3;
    for (int year = 1; year <= years; ++year) {
        std::vector<int> monthly_sales(kShops);
        for (int shop = 0; shop < kShops; ++shop)
            monthly_sales[shop] = year * (shop % 100 + 1);
        const std::vector<int> totals = totals_of_year(monthly_sales);
        printf("year %d: the best shop sold %d, all together %lld\n", year,
               *std::max_element(totals.begin(), totals.end()),
               std::accumulate(totals.begin(), totals.end(), 0LL));
    }
}
