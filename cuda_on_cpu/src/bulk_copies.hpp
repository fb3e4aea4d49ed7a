// Bulk copies that were issued and are not carried out yet: of boxes of matrices, of bytes, and
// single values for another block of the cluster.
#pragma once

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

// Loads to shared memory of one block, in the order of issue. Other blocks of the cluster issue
// some of them.
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
        std::vector<unsigned char> data{};  // in place of the box: what the instruction itself holds

        void carry_out() const;
    };

    void clear();
    // Until the load is carried out its destination is poison, unless the load combines with what
    // is there. False: the block has ended.
    bool add(const Load& load);
    bool ended();
    // Takes out those that one of the barriers counts.
    std::vector<Load> take(const std::vector<std::uint64_t*>& barriers);
    // The block has ended. Returns one that was still to come.
    std::optional<Load> end();

  private:
    std::mutex mutex_;
    bool ended_ = true;
    std::deque<Load> loads_;
};

// Stores from shared memory of one block, in groups of each thread. A bulk store reads shared
// memory as it was at the last fence.proxy.async. This class keeps whether there was such a fence,
// and the contents of places that were stored from before.
class BulkStores {
  public:
    // Free for kernels that store nothing.
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
    // `until_written` have also written. An error: memory that was written to before the read was
    // certain.
    std::string wait(unsigned thread, unsigned pending, bool until_written);
    // The thread ends. What is wrong; "" if nothing is.
    std::string finish(unsigned thread);

  private:
    struct Store {
        TensorMap map;
        int column;
        int row;
        const void* shared;
        std::vector<unsigned char> data;  // when the store was issued
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
    std::map<const void*, std::vector<unsigned char>>
        seen_;  // what stores would see, at places they begin at
};

}  // namespace cuda_on_cpu
