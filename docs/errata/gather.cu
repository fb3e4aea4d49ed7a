// Chapter 22: which of two decompositions of the electrostatic map needs no atomics, one thread per
// atom (scatter) or one per grid point (gather)? The printed page has it the other way round.
//
//   ./course run docs/errata/gather.cu
#include "errata.hpp"

constexpr int kAtoms = 32, kPoints = 64;

// What an atom adds to a point. Whole numbers, so that every sum is exact.
__device__ inline int share(int atom, int point) {
    return 1 + (atom * 5 + point * 3) % 7;
}

// One thread per atom, without atomics. A GPU may run the loads of a warp before its stores; the
// __syncwarp() between them fixes that order, so that every machine shows the same.
__global__ void scatter(int* potential) {
    const int atom = threadIdx.x;
    for (int point = 0; point < kPoints; ++point) {
        const int sum = potential[point];
        __syncwarp();
        potential[point] = sum + share(atom, point);
        __syncwarp();
    }
}

// One thread per point, without atomics: no other thread stores to its point.
__global__ void gather(int* potential) {
    const int point = threadIdx.x;
    int sum = 0;
    for (int atom = 0; atom < kAtoms; ++atom)
        sum += share(atom, point);
    potential[point] = sum;
}

int main() {
    std::vector<int> expected(kPoints, 0);
    for (int point = 0; point < kPoints; ++point)
        for (int atom = 0; atom < kAtoms; ++atom)
            expected[point] += 1 + (atom * 5 + point * 3) % 7;
    const errata::OnDevice<int> by_atom(kPoints, 0), by_point(kPoints, 0);
    scatter<<<1, kAtoms>>>(by_atom.data());
    gather<<<1, kPoints>>>(by_point.data());
    return errata::show("22.2", "of 64 points wrong without atomics",
                        errata::differences(by_atom.to_host(), expected),
                        errata::differences(by_point.to_host(), expected))
               ? 0
               : 1;
}
