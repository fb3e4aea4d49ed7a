// Bulk copies that were issued but not carried out yet: boxes of matrices, bytes, and single values
// for another block of the cluster.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuda_on_cpu/hopper.h"
#include "cuda_on_cpu/language.h"
#include "tensor_map.hpp"

namespace cuda_on_cpu {

// Loads to the shared memory of one block, in the order of issue. Other blocks of the cluster may
// issue some of them.
class BulkLoads {
  public:
    struct Load {
        TensorMap map;
        int column;
        int row;
        void* shared;
        std::uint64_t* barrier;
        unsigned parity;  // of the phase in which it was issued
        Site site;
        Combine combine{};
        std::vector<unsigned char>
            data{};  // the operand of an instruction that stores a value instead of a box

        void carry_out() const;
    };

    void clear();
    // Poisons the destination until the load is carried out, unless the load is combined with the
    // old contents. False: the block has ended.
    bool add(const Load& load);
    bool ended();
    // Removes and returns the loads that complete at one of the barriers.
    std::vector<Load> take(const std::vector<std::uint64_t*>& barriers);
    // The block has ended. Returns a load that was still pending.
    std::optional<Load> end(bool in_cluster);

  private:
    std::mutex mutex_;
    // Atomic for a block that is not in a cluster, which needs no lock for no loads: a lock waits
    // until all that the block has stored is in the cache.
    std::atomic<bool> ended_ = true;
    std::atomic<bool> has_loads_ = false;
    std::deque<Load> loads_;
};

// Stores from the shared memory of one block, in groups per thread. A bulk store reads shared
// memory as it was at the last fence.proxy.async. This class records whether there was such a
// fence, and the contents of the sources of earlier stores.
class BulkStores {
  public:
    // Costs kernels without bulk stores only this check.
    void clear() {
        if (used_) *this = BulkStores();
    }
    bool used() const { return used_; }

    void fence();
    // What is wrong; "" if nothing is.
    std::string add(unsigned thread, const TensorMap& map, int column, int row, const void* shared,
                    Combine combine);
    void commit(unsigned thread);
    // All groups of the thread except the `pending` newest have read shared memory, and with
    // `until_written` have also written. Returns an error if source memory was overwritten before
    // the read was guaranteed.
    std::string wait(unsigned thread, unsigned pending, bool until_written);
    // The thread ends. Returns what is wrong; "" if nothing is.
    std::string finish(unsigned thread);

  private:
    struct Store {
        TensorMap map;
        int column;
        int row;
        const void* shared;
        std::vector<unsigned char> data;  // the source as it was when the store was issued
        unsigned group;
        Combine combine;
        bool read = false;
    };
    struct Queue {
        std::deque<Store> stores;
        unsigned group = 0;
    };
    bool used_ = false;
    bool fenced_ = false;
    std::map<unsigned, Queue> queues_;  // of each thread
    // For each source address, the data that a store would read.
    std::map<const void*, std::vector<unsigned char>> seen_;
};

}  // namespace cuda_on_cpu
