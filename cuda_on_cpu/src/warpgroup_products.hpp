// wgmma: products of warpgroups that have been started and not been waited for. Each warp of a
// warpgroup has 16 of the 64 rows.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/thread.h"

namespace cuda_on_cpu {

class WarpgroupProducts {
  public:
    // Shared memory: `window` is where address 0 of descriptors lies, [begin, end) what belongs to
    // the block.
    void begin_block(const char* window, const char* begin, const char* end, unsigned warps);

    // What a lane brings to a product.
    struct Operands {
        char* d = nullptr;  // `registers` words of 32 bits
        unsigned registers = 0;
        std::uint64_t a = 0;
        std::uint64_t b = 0;
        ProductOf product{};
        Site site{"", 0};
        const unsigned* a_registers = nullptr;  // four; null: A is in shared memory
    };

    // For all lanes of a warp. These return what is wrong; "" if nothing is.
    std::string issue(unsigned warp, const Lanes& lanes);
    void fence(unsigned warp);
    void commit(unsigned warp) { ++warps_[warp].group; }
    std::string wait(unsigned warp, unsigned pending);
    std::string end_block() const;

    // fence.proxy.async of any thread; a bulk copy has written to shared memory.
    void fence_proxy() { ++fences_; }
    void loaded(const void* shared, std::size_t bytes);

    // A lane of the warp waits, for all of them, until the block can do nothing else. False:
    // another lane does already, or what the warp waits for has been computed.
    bool begin_wait(unsigned warp, unsigned pending);
    void end_wait(unsigned warp);
    bool any_waits() const { return waiting_ > 0; }
    // Does the warp wait, and have the other warps of the warpgroup started what it waits for? It
    // is one product of all four.
    bool can_end_wait(unsigned warp) const;

  private:
    static constexpr unsigned kRows = 16;  // of a warp
    static constexpr unsigned kMostDepth = 32;
    static constexpr std::size_t kWord = 4;  // bytes of a register
    static constexpr unsigned kMostColumns = 256;
    static constexpr unsigned kPiece = 16;  // bytes of neighbouring elements

    // Sums of a warp: registers of its lanes, kept aside while products are under way.
    struct Sums {
        std::array<char*, 32> registers;
        unsigned count;  // of registers
        unsigned under_way = 0;
        std::vector<std::uint32_t> values;  // bits, in rows of 2 * count
    };
    // A in registers: what they held when the product was issued. They must not change until it has
    // been waited for.
    struct LeftFactor {
        std::array<const unsigned*, 32> registers;
        std::array<std::array<unsigned, 4>, 32> values;
    };
    struct Product {
        Sums* sums;
        Operands operands;
        unsigned group;
        std::shared_ptr<LeftFactor> left;  // null: A is in shared memory
    };
    struct Warp {
        std::list<Sums> sums;
        // A in registers, by those of the first lane: what it held at the last fence.
        std::map<const unsigned*, LeftFactor> left;
        std::deque<Product> products;  // not delivered yet
        std::uint64_t first = 0;       // the number of the first of them
        unsigned group = 0;
        bool fenced = false;  // since it last waited
        bool ever_fenced = false;
        bool waits = false;
        unsigned waits_pending = 0;
        std::uint64_t started() const { return first + products.size(); }
    };

    // Products of a warpgroup. What shared memory holds of their factors must not change from when
    // the first warp issues one until it has been waited for.
    using Factors = std::vector<unsigned char>;
    struct Warpgroup {
        std::uint64_t computed = 0;
        std::deque<Factors> issued;  // what those held that are not computed yet
    };

    std::uint64_t end_of_wait(const Warp& warp, unsigned pending) const;
    template <class Put>
    static void for_pieces(const Operands& operands, const Put& put);
    std::string gather(const Operands& operands, Factors& factors) const;
    bool misses_fence(const Operands& operands);
    std::string compute(unsigned warpgroup);
    const char* find(std::uintptr_t address) const;

    const char* window_ = nullptr;
    const char* begin_ = nullptr;
    const char* end_ = nullptr;
    std::vector<Warp> warps_;
    std::vector<Warpgroup> warpgroups_;
    unsigned waiting_ = 0;  // warps
    // Of each sixteen bytes of shared memory: what products or bulk copies know of them, and the
    // fences before that. Products need not see what threads write until the next fence.
    struct Known {
        std::array<unsigned char, kPiece> bytes;
        unsigned fences;
    };
    std::vector<Known> known_;
    unsigned fences_ = 0;
    Factors now_;  // what the factors hold of the product that is being computed
    // The factors of the one that is being computed: too large for the stack of a thread.
    double a_[4 * kRows][kMostDepth];
    double b_[kMostDepth][kMostColumns];
};

}  // namespace cuda_on_cpu
