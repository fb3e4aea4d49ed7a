// Verdict: out-of-bounds write, line 26
//
// Seats: which guest sits on which seat?
//
//   nvcc seats.cu -o seats && ./seats 300
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(call)                                                                               \
    do {                                                                                               \
        const cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status)); \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (false)

constexpr unsigned kNoSeat = ~0U;  // of a guest who has not paid

// seat_of: a seat for each of n guests; guests: a guest for each seat, -1 where it is free.
__global__ void seat(const unsigned* seat_of, int* guests, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && seat_of[i] != kNoSeat) guests[seat_of[i]] = i;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 300;
    const std::size_t bytes = n * sizeof(int);
    std::vector<unsigned> seat_of(n);
    for (int i = 0; i < n; ++i)
        seat_of[i] = i % 100 == 50 ? kNoSeat : n - 1 - i;

    unsigned* seat_of_d = nullptr;
    int* guests_d = nullptr;
    CUDA_CHECK(cudaMalloc(&seat_of_d, bytes));
    CUDA_CHECK(cudaMalloc(&guests_d, bytes));
    CUDA_CHECK(cudaMemcpy(seat_of_d, seat_of.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(guests_d, 0xFF, bytes));
    seat<<<(n + 255) / 256, 256>>>(seat_of_d, guests_d, n);
    CUDA_CHECK(cudaGetLastError());

    std::vector<int> guests(n);
    CUDA_CHECK(cudaMemcpy(guests.data(), guests_d, bytes, cudaMemcpyDeviceToHost));
    int free_seats = 0;
    for (const int guest : guests)
        free_seats += guest < 0;
    printf("guest %d sits in front, guest %d at the back, %d seats are free\n", guests[0], guests[n - 1],
           free_seats);
    CUDA_CHECK(cudaFree(seat_of_d));
    CUDA_CHECK(cudaFree(guests_d));
}
