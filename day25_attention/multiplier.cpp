#include "multiplier.hpp"

#include <algorithm>
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/fused_attention.hpp"
#include "common/device/grid.hpp"
#include "gemm_ladder/scratch.hpp"
#include "gemm_ladder/sgemm.hpp"

namespace day25 {
namespace {

// One of products(), which need nothing.
template <std::size_t INDEX>
class Tiled : public Multiplier {
  public:
    void multiply(const Product& product, cudaStream_t stream) override {
        products()[INDEX].launcher(product, stream);
    }
    bool takes_transposed() const override { return true; }
};

// The ladder: plain multiply-adds with the tile that suits the shape (step 14), or FP32 accuracy from tensor cores (step 15).
class Ladder : public Multiplier {
  public:
    explicit Ladder(std::span<const ProductShape> shapes)
        : tensor_(course::find_variant(gemm::beyond(), "15_tf32x3")),
          plain_(course::find_variant(gemm::beyond(), "14_dispatcher")),
          frugal_(course::find_variant(gemm::beyond(), "12_multi_stage")),
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

    // Step 15 has a block for each 128 x 64 results, and one on a multiprocessor is nearly as fast as two. It is a third faster than
    // step 14, so a quarter of the multiprocessors may lie idle in the mean.
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

template <std::size_t INDEX>
std::unique_ptr<Multiplier> make_tiled(std::span<const ProductShape>) {
    return std::make_unique<Tiled<INDEX>>();
}

std::unique_ptr<Multiplier> make_ladder(std::span<const ProductShape> shapes) {
    return std::make_unique<Ladder>(shapes);
}

std::string fused_constraint(const AttentionTask& task) {
    if (task.padding) return "has no mask for padding";
    if (task.width > course::kMostFusedColumns || task.width != task.value_width) {
        return "needs heads of at most " + std::to_string(course::kMostFusedColumns) +
               " columns, as many of values as of keys, not " + std::to_string(task.width) + " and " +
               std::to_string(task.value_width);
    }
    return "";
}

}  // namespace

std::span<const Method> methods() {
    static const std::array<Method, 4> list = {{
        {products()[0].name, products()[0].idea, {make_tiled<0>}},
        {products()[1].name, products()[1].idea, {make_tiled<1>}},
        {"ladder",
         "the ladder's last steps; K is transposed for them",
         {make_ladder, false, course::Arithmetic::kOther}},
        {"fused",
         "day 26: scores are never written; the ladder for projections",
         {make_ladder, true, course::Arithmetic::kOther},
         nullptr,
         fused_constraint},
    }};
    return list;
}

}  // namespace day25
