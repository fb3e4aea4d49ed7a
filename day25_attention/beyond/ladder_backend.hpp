// Day 25, beyond: the version `ladder` computes its products with the last steps of gemm_ladder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "attention.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "gemm_ladder/scratch.hpp"
#include "gemm_ladder/sgemm.hpp"

namespace day25 {

// The ladder: FP32 multiply-adds with the tile that suits the shape (step 14), or FP32 accuracy
// from tensor cores (step 15).
class Ladder : public MatmulBackend {
  public:
    explicit Ladder(std::span<const ProductShape> shapes)
        : tensor_(course::find_version(gemm::beyond(), "15_tf32x3")),
          plain_(course::find_version(gemm::beyond(), "14_dispatcher")),
          frugal_(course::find_version(gemm::beyond(), "12_multi_stage")),
          has_tensor_cores_(tensor_.cannot_run({}).empty()) {
        multiprocessors_ = course::multiprocessors();
        for (const ProductShape& shape : shapes) {
            const gemm::ScratchSize size = plain_.launcher.scratch({shape.rows, shape.cols, shape.depth});
            size_ = {std::max(size_.partial, size.partial), std::max(size_.tickets, size.tickets)};
        }
        scratch_ = gemm::ScratchMemory(size_);
    }

    void multiply(const Product& product, cudaStream_t stream) override {
        course::require(!product.transpose_b,
                        "day25: ladder: transpose_b is set; expected a B that is not transposed");
        const gemm::Sgemm gemm{.a = product.a,
                               .b = product.b,
                               .c = product.c,
                               .alpha = product.alpha,
                               .beta = product.beta,
                               .scratch = scratch_.view()};
        step_for({gemm.m(), gemm.n(), gemm.k()}).launcher.launch(gemm, stream);
    }

    bool takes_transposed() const override { return false; }

  private:
    const gemm::Step& step_for(const gemm::Shape& shape) const {
        if (has_tensor_cores_ && fills_rounds(shape)) return tensor_;
        const gemm::ScratchSize needed = plain_.launcher.scratch(shape);
        const bool enough = needed.partial <= size_.partial && needed.tickets <= size_.tickets;
        return enough ? plain_ : frugal_;
    }

    // Step 15 has a block for every 128 x 64 results, and one block on an SM is nearly as fast as
    // two. It is a third faster than step 14, so up to a quarter of the SMs may be idle on average.
    bool fills_rounds(const gemm::Shape& shape) const {
        constexpr std::size_t kRows = 128;
        constexpr std::size_t kCols = 64;
        const std::size_t tiles = course::ceil_div(shape.m, kRows) * course::ceil_div(shape.n, kCols);
        const std::size_t places = course::ceil_div(tiles, multiprocessors_) * multiprocessors_;
        return 4 * shape.m * shape.n >= 3 * places * kRows * kCols;
    }

    const gemm::Step& tensor_;
    const gemm::Step& plain_;
    const gemm::Step& frugal_;  // needs no scratch memory
    bool has_tensor_cores_;
    std::size_t multiprocessors_ = 0;
    gemm::ScratchSize size_;
    gemm::ScratchMemory scratch_;
};

inline std::unique_ptr<MatmulBackend> make_ladder(std::span<const ProductShape> shapes) {
    return std::make_unique<Ladder>(shapes);
}

}  // namespace day25
