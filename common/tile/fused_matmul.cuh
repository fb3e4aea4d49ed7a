// A product of matrices, and what is fused into it: its epilogue.
#pragma once

#include <cuda_runtime.h>

#include "common/device/launch.hpp"
#include "common/tile/main_loop.cuh"
#include "common/tile/tile_order.cuh"

namespace course {

// An epilogue is a struct that the kernel is given, with
//
//     begin<T>()                    what a thread keeps from one tile of its block to the next: a State
//     take<T>(state, at, sums)      a finished tile: sums[i][j] belongs to row at.row(i) and column at.col(j) of product at.tile.product;
//                                   rows and columns may lie outside C
//     end<T>(state, walk)           when the block has no more tiles
//
// All threads of the block call them together. Registers are full of sums: what is larger than a
// few numbers belongs in shared memory.
//
// Idea: the epilogue works on the elements of C while they are in registers.
// Cost removed: C on its way to memory and back, 8 bytes for each element. In that time the GPU
// does a hundred multiply-adds.
// Still limits it: the multiply-adds; with a short K, the epilogue.
template <class T, int BLOCKS, class LoaderA, class LoaderB, class Tiles, class Add, class Epilogue>
__global__ __launch_bounds__(T::THREADS,
                             BLOCKS) void fused_matmul(const __grid_constant__ Factors factors,
                                                       const __grid_constant__ Tiles tiles, const Add add,
                                                       const __grid_constant__ Epilogue epilogue) {
    extern __shared__ float4 shared[];
    const auto& walk = tiles.walk();
    auto state = epilogue.template begin<T>();
    multiply_tiles<T, LoaderA, LoaderB>(factors, walk, reinterpret_cast<Stage<T>*>(shared), add,
                                        [&](const Tile& tile, float(&sums)[T::TM][T::TN]) {
                                            epilogue.template take<T>(state, ThreadTileCoords<T>{tile}, sums);
                                        });
    epilogue.template end<T>(state, walk);
}

// Which factors are copied float4 by float4 if they are MN-major and aligned. kOfBoth: twice as
// many kernels to compile.
enum class Packs { kOfB, kOfBoth };

// The kernel for a tile; BLOCKS of them fit on an SM.
template <class T, int BLOCKS, class Tiles, class Epilogue, class Add = MultiplyAdd,
          Packs PACKS = Packs::kOfB>
class FusedMatmul {
    template <template <int, int, int> class LoaderA, template <int, int, int> class LoaderB>
    static constexpr auto kKernel = fused_matmul<T, BLOCKS, LoaderA<T::BM, T::BK, T::THREADS>,
                                                 LoaderB<T::BN, T::BK, T::THREADS>, Tiles, Add, Epilogue>;
    static constexpr std::size_t kShared = sizeof(Stage<T>) * T::STAGES;

  public:
    // Blocks that the current device runs at the same time.
    unsigned resident_blocks() const {
        allow_shared_bytes(kernel(false, false), kShared);
        return course::resident_blocks(kernel(false, false), T::THREADS, kShared);
    }

    void launch(unsigned grid, const Factors& factors, const Tiles& tiles, const Epilogue& epilogue,
                cudaStream_t stream) const {
        const auto chosen = kernel(a_goes_in_packs(factors), b_goes_in_packs(factors));
        course::launch(chosen, {grid, T::THREADS, kShared, stream}, factors, tiles, Add{}, epilogue);
    }

  private:
    static auto kernel(bool a_in_packs, bool b_in_packs) {
        if constexpr (PACKS == Packs::kOfBoth) {
            if (a_in_packs)
                return b_in_packs ? kKernel<PackLoader, PackLoader> : kKernel<PackLoader, ElementLoader>;
        }
        return b_in_packs ? kKernel<ElementLoader, PackLoader> : kKernel<ElementLoader, ElementLoader>;
    }
};

}  // namespace course
