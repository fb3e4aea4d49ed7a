// Day 14 as one program: the potential of N atoms at SIZE x SIZE x SIZE points, checked and timed.
//
//   nvcc -std=c++20 -I.. program.cu && ./a.out 256 4000      in this folder, with a GPU
//   ./course run day14 --program                             anywhere
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "electrostatics.cuh"

// Every CUDA call can fail: check each one.
#define CHECK(call)                                                                             \
    do {                                                                                        \
        const cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (false)

// `text` as a whole number from 1 to `most`; 0 if it is not one, such as 1e9.
int number(const char* text, long long most) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    return *end == '\0' && value >= 1 && value <= most ? static_cast<int>(value) : 0;
}

// The sum in double, for one point.
double expected(const std::vector<day14::Atom>& atoms, double x, double y, double z, double& magnitude) {
    double sum = 0;
    for (const day14::Atom& atom : atoms) {
        const double s = (x - atom.x) * (x - atom.x) + (y - atom.y) * (y - atom.y) +
                         (z - atom.z) * (z - atom.z) + day14::kSoftening;
        sum += atom.charge / std::sqrt(s);
        magnitude += std::abs(atom.charge) / std::sqrt(s);
    }
    return sum;
}

int main(int argc, char** argv) {
    const int size = argc > 1 ? number(argv[1], 1024) : 32;
    const int n = argc > 2 ? number(argv[2], 1'000'000) : 100;
    if (size == 0 || n == 0) {
        std::fprintf(stderr, "expected SIZE from 1 to 1024 and N from 1 to 1000000\n");
        return 2;
    }
    const day14::Grid grid{size, size, size, 0.5f};
    std::mt19937 random(14);
    std::uniform_real_distribution<float> place(0, 0.5f * static_cast<float>(size)), charge(-1, 1);
    std::vector<day14::Atom> atoms(n);
    for (day14::Atom& atom : atoms)
        atom = {place(random), place(random), place(random), charge(random)};

    const std::size_t points = grid.index(0, 0, size);
    day14::Atom* device_atoms;
    float* device_potential;
    CHECK(cudaMalloc(&device_atoms, n * sizeof(day14::Atom)));
    CHECK(cudaMalloc(&device_potential, points * sizeof(float)));
    CHECK(cudaMemcpy(device_atoms, atoms.data(), n * sizeof(day14::Atom), cudaMemcpyHostToDevice));

    CHECK(cudaMemset(device_potential, 0, points * sizeof(float)));
    // The first launch also loads the kernel, so the second one is timed.
    day14::launch_all_slices(device_atoms, n, grid, device_potential, nullptr);
    CHECK(cudaMemset(device_potential, 0, points * sizeof(float)));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    day14::launch_all_slices(device_atoms, n, grid, device_potential, nullptr);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));

    std::vector<float> potential(points);
    CHECK(cudaMemcpy(potential.data(), device_potential, points * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    constexpr int kChecked = 1000;
    for (int i = 0; i < kChecked; ++i) {
        const int x = static_cast<int>(random() % size);
        const int y = static_cast<int>(random() % size);
        const int z = static_cast<int>(random() % size);
        double magnitude = 0;
        const double right = expected(atoms, 0.5 * x, 0.5 * y, 0.5 * z, magnitude);
        // Each term is off by 30 roundings at most, and the sum by about 2 sqrt(n).
        const double allowed = (2 * std::sqrt(n) + 30) * 0x1p-24 * magnitude;
        if (!(std::abs(potential[grid.index(x, y, z)] - right) <= allowed)) ++wrong;
    }
    std::printf("%d^3 points, %d atoms: %d of %d points wrong, %.3f ms, %.1f billion pairs per second\n",
                size, n, wrong, kChecked, ms, 1e-6 * static_cast<double>(points) * n / ms);
    CHECK(cudaFree(device_atoms));
    CHECK(cudaFree(device_potential));
    return wrong != 0;
}
