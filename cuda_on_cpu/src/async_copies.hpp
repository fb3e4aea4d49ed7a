// The pending asynchronous copies (cp.async) of the threads of a block.
#pragma once

#include <array>
#include <vector>

namespace cuda_on_cpu {

class AsyncCopies {
  public:
    static constexpr unsigned kMaxBytes = 16;

    AsyncCopies();

    // Kernels without cp.async pay only this check, and one of used() when a thread ends.
    void begin_block() {
        if (used_) clear();
    }
    bool used() const { return used_; }

    // Copies the first `bytes` of `data` to `shared` once the thread has waited; until then
    // `shared` holds poison.
    void issue(unsigned thread, void* shared, const std::array<unsigned char, kMaxBytes>& data,
               unsigned bytes);
    void commit(unsigned thread);
    // Completes all groups of the thread except the `pending` newest.
    void wait(unsigned thread, unsigned pending);
    // Completes all copies of a thread, including those that are not in a group yet.
    void finish(unsigned thread);

    static constexpr unsigned kNone = ~0u;

    // Copies that threads wait for at a barrier, oldest first.
    struct Batch {
        unsigned oldest = kNone;
        unsigned newest = kNone;
    };
    // Moves the thread's copies to the batch, so that the thread's own wait() no longer completes
    // them.
    void move_to(Batch& batch, unsigned thread);
    // Moves all of `later` to the end of `batch`.
    void append(Batch& batch, Batch& later);
    void complete(Batch& batch);

  private:
    struct Copy {
        void* shared;
        std::array<unsigned char, kMaxBytes> data;
        unsigned bytes;
        unsigned group;
        unsigned next;  // next copy of the same queue or of the free list
    };
    // The copies of a thread, and the group of its next copy.
    struct Queue : Batch {
        unsigned group = 0;
    };

    void clear();
    void complete_oldest(Batch& batch);

    bool used_ = false;
    std::vector<Queue> queues_;  // one for each thread
    std::vector<Copy> pool_;     // grows to the largest number of pending copies, and keeps that size
    unsigned unused_ = kNone;
};

}  // namespace cuda_on_cpu
