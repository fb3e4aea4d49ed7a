// Asynchronous operations of a block: copies (cp.async), bulk loads and stores of boxes (TMA), and
// warpgroup MMAs (wgmma). Each is carried out as late as the program allows, so that a missing wait
// gives a wrong result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "async_copies.hpp"
#include "bulk_copies.hpp"
#include "cuda_on_cpu/hopper.h"
#include "warpgroup_products.hpp"

namespace cuda_on_cpu {

class BlockRunner;

class AsyncEngine {
  public:
    explicit AsyncEngine(BlockRunner& block) : block_(block) {}
    void begin_block();
    // The block has ended. Returns what is wrong with the operations it left pending; "" if nothing
    // is.
    std::string end_block();
    // The running thread has ended.
    void thread_ended() {
        if (copies_.used() || stores_.used()) finish_thread();
    }

    // cp.async
    void issue_copy(void* shared, const void* global, unsigned bytes, unsigned valid_bytes, Site site);
    void commit_copies();
    void wait_for_copies(unsigned pending);
    AsyncCopies& copies() { return copies_; }

    // Boxes. With `rank`, a load goes to that block of the cluster, at the same offset in its
    // shared memory.
    static constexpr unsigned kOwnBlock = ~0u;
    void load_box(void* shared, const CUtensorMap* map, int column, int row, std::uint64_t* barrier,
                  unsigned rank, Site site, unsigned extents = 2);
    // Loads from matrix (i, j) of a map of four extents.
    void load_box(void* shared, const CUtensorMap* map, int column, int row, int i, int j,
                  std::uint64_t* barrier, Site site);
    // Loads through an im2col map, starting at `channel` of the first pixel. `first` is the column,
    // row and image of that pixel.
    void load_pixels(void* shared, const CUtensorMap* map, int channel, const int (&first)[3],
                     const std::uint16_t (&offset)[2], std::uint64_t* barrier, Site site);
    void store_box(const CUtensorMap* map, int column, int row, const void* shared, Site site,
                   unsigned extents = 2);
    // One-dimensional bulk copies. `combine`: how the data is combined with the destination.
    void load_bytes(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier, unsigned rank,
                    Site site);
    void store_bytes(void* global, const void* shared, unsigned bytes, Combine combine, Site site);
    // Copies to the shared memory of a block of the cluster, which also holds the mbarrier.
    // copy_to_block() reads bytes of this block's shared memory when the copy is carried out;
    // store_in_block() reads a value at once.
    void copy_to_block(void* there, const void* shared, unsigned bytes, std::uint64_t* barrier,
                       Combine combine, Site site);
    void store_in_block(void* there, const void* value, unsigned bytes, std::uint64_t* barrier,
                        Combine combine, Site site);
    void commit_stores();
    void wait_for_stores(unsigned pending, bool until_written, Site site);
    void fence_proxy_async();
    // Carries out the loads for which threads of the block wait. False: the launch has failed.
    bool carry_out_awaited_loads();
    // Other blocks of the cluster add to them.
    BulkLoads& loads() { return loads_; }

    // wgmma
    WarpgroupProducts& products();
    // Suspends the warp until the block cannot continue without the products for which it waits.
    void wait_for_products(unsigned pending, Site site);
    // False: there is no warp waiting for products that can be computed now.
    bool wake_for_products();

    // The line of the kernel on whose behalf the runtime is reading memory now; line 0: none.
    Site take_reading_site() { return std::exchange(reading_site_, Site{"", 0}); }

  private:
    unsigned thread_number() const;
    void finish_thread();
    const TensorMap& known_map(const CUtensorMap* map, unsigned rank, bool im2col, Site site);
    void check_box(const TensorMap& map, int column, int row, const void* shared, Site site);
    void load(const TensorMap& known, int column, int row, void* shared, std::uint64_t* barrier,
              unsigned rank, Site site);
    void issue(BulkLoads::Load load, unsigned rank, bool from_global, Site site);
    unsigned rank_of_destination(const void* there, unsigned bytes, const std::uint64_t* barrier, Site site);
    void store(const TensorMap& map, int column, int row, const void* shared, Combine combine, Site site);
    void check_bytes(const void* shared, const void* global, unsigned bytes, Site site);
    [[noreturn, gnu::cold]] void fail_on_bytes(cudaError_t error, unsigned bytes, const std::string& why,
                                               Site site);
    [[noreturn, gnu::cold]] void fail_on_copy(cudaError_t error, unsigned bytes, const std::string& why,
                                              Site site);

    BlockRunner& block_;
    AsyncCopies copies_;
    BulkLoads loads_;
    BulkStores stores_;
    WarpgroupProducts products_;
    std::uint64_t block_of_products_ = 0;
    Site reading_site_{"", 0};
};

}  // namespace cuda_on_cpu
