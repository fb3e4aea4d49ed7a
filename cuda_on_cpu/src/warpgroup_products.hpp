// wgmma: the warpgroups' MMAs that have been issued but not waited for. Each warp of a warpgroup
// computes 16 of the 64 rows.
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
    // Shared memory: `window` is address 0 of the descriptors, [begin, end) is the block's memory.
    void begin_block(const char* window, const char* begin, const char* end, unsigned warps);

    // A lane's operands of an MMA.
    struct Operands {
        char* d = nullptr;  // `registers` words of 32 bits
        unsigned registers = 0;
        std::uint64_t a = 0;
        std::uint64_t b = 0;
        ProductOf product{};
        Site site{"", 0};
        const unsigned* a_registers = nullptr;  // four; null: A is in shared memory
    };

    // Called once for all lanes of a warp. These functions return what is wrong; "" if nothing is.
    std::string issue(unsigned warp, const Lanes& lanes);
    void fence(unsigned warp);
    void commit(unsigned warp) { ++warps_[warp].group; }
    std::string wait(unsigned warp, unsigned pending);
    std::string end_block() const;

    // Called for a fence.proxy.async of any thread, and when a bulk copy has written to shared
    // memory.
    void fence_proxy() { ++fences_; }
    void loaded(const void* shared, std::size_t bytes);

    // One lane waits for the whole warp, until the block cannot do anything else. False: another
    // lane waits already, or the MMAs that the warp waits for have been computed.
    bool begin_wait(unsigned warp, unsigned pending);
    void end_wait(unsigned warp);
    bool any_waits() const { return waiting_ > 0; }
    // Does the warp wait, and have the other warps of the warpgroup issued the MMAs for which it
    // waits? All four warps take part in each MMA.
    bool can_end_wait(unsigned warp) const;

  private:
    static constexpr unsigned kRows = 16;  // of a warp
    static constexpr unsigned kMostDepth = 32;
    static constexpr std::size_t kWord = 4;  // bytes of a register
    static constexpr unsigned kMostColumns = 256;
    static constexpr unsigned kPiece = 16;  // bytes of consecutive elements

    // The accumulators of a warp: registers of its lanes, kept aside while MMAs are in progress.
    struct Sums {
        std::array<char*, 32> registers;
        unsigned count;  // of registers
        unsigned under_way = 0;
        std::vector<std::uint32_t> values;  // bits, in rows of 2 * count
    };
    // A in registers, as they were when the MMA was issued. They must not change until the warp has
    // waited for the MMA.
    struct LeftOperand {
        std::array<const unsigned*, 32> registers;
        std::array<std::array<unsigned, 4>, 32> values;
    };
    struct Product {
        Sums* sums;
        Operands operands;
        unsigned group;
        std::shared_ptr<LeftOperand> left;  // null: A is in shared memory
    };
    struct Warp {
        std::list<Sums> sums;
        // A in registers at the last fence, indexed by the registers of the first lane.
        std::map<const unsigned*, LeftOperand> left;
        std::deque<Product> products;  // not delivered yet
        std::uint64_t first = 0;       // the number of the first of them
        unsigned group = 0;
        bool fenced = false;  // since it last waited
        bool ever_fenced = false;
        bool waits = false;
        unsigned waits_pending = 0;
        std::uint64_t started() const { return first + products.size(); }
    };

    // MMAs of a warpgroup. Their operands in shared memory must not change between the first warp's
    // issue of an MMA and the wait for it.
    using OperandBytes = std::vector<unsigned char>;
    struct Warpgroup {
        std::uint64_t computed = 0;
        std::deque<OperandBytes> issued;  // operands of the MMAs that are not computed yet
    };

    std::uint64_t end_of_wait(const Warp& warp, unsigned pending) const;
    template <class Put>
    static void for_pieces(const Operands& operands, const Put& put);
    std::string gather(const Operands& operands, OperandBytes& bytes) const;
    bool misses_fence(const Operands& operands);
    std::string compute(unsigned warpgroup);
    const char* find(std::uintptr_t address) const;

    const char* window_ = nullptr;
    const char* begin_ = nullptr;
    const char* end_ = nullptr;
    std::vector<Warp> warps_;
    std::vector<Warpgroup> warpgroups_;
    unsigned waiting_ = 0;  // warps
    // For each 16 bytes of shared memory: the contents that MMAs or bulk copies last read or wrote,
    // and the number of fences before that. Until the next fence, MMAs may miss what threads have
    // written.
    struct Known {
        std::array<unsigned char, kPiece> bytes;
        unsigned fences;
    };
    std::vector<Known> known_;
    unsigned fences_ = 0;
    OperandBytes now_;  // the operands of the MMA that is being computed
    // The same operands as numbers: too large for the stack of a thread.
    double a_[4 * kRows][kMostDepth];
    double b_[kMostDepth][kMostColumns];
};

}  // namespace cuda_on_cpu
