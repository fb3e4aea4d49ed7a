#include "scratch.hpp"

#include "common/check/check.hpp"

namespace gemm {

ScratchMemory::ScratchMemory(const ScratchSize& size) : partial_(size.partial), tickets_(size.tickets) {
    if (size.tickets != 0) CUDA_CHECK(cudaMemset(tickets_.data(), 0, tickets_.bytes()));
}

Scratch ScratchMemory::view() {
    return {partial_.span(), tickets_.span()};
}

}  // namespace gemm
