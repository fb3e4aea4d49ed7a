// What the threads of a block have copied asynchronously and not waited for yet.
#pragma once

#include <array>
#include <vector>

namespace cuda_on_cpu {

class AsyncCopies {
  public:
    static constexpr unsigned kMaxBytes = 16;

    AsyncCopies();

    // Free for kernels that copy nothing: this, and one look at used() when a thread ends.
    void begin_block() {
        if (used_) clear();
    }
    bool used() const { return used_; }

    // `data`, of which the first `bytes` count, shall be at `shared` once the thread has waited;
    // until then there is poison.
    void issue(unsigned thread, void* shared, const std::array<unsigned char, kMaxBytes>& data,
               unsigned bytes);
    void commit(unsigned thread);
    // Completes the thread's groups but the `pending` newest.
    void wait(unsigned thread, unsigned pending);
    // Completes all copies of a thread, those of no group as well.
    void finish(unsigned thread);

    static constexpr unsigned kNone = ~0u;

    // Copies for which others than their thread wait, oldest first.
    struct Batch {
        unsigned oldest = kNone;
        unsigned newest = kNone;
    };
    // The thread's copies leave it for the batch: no wait of its own completes them.
    void move_to(Batch& batch, unsigned thread);
    // All of `later` is at the end of `batch` then.
    void append(Batch& batch, Batch& later);
    void complete(Batch& batch);

  private:
    struct Copy {
        void* shared;
        std::array<unsigned char, kMaxBytes> data;
        unsigned bytes;
        unsigned group;
        unsigned next;  // of the same thread, or of the unused ones
    };
    // Copies of a thread, and the group to which the next one will belong.
    struct Queue : Batch {
        unsigned group = 0;
    };

    void clear();
    void complete_oldest(Batch& batch);

    bool used_ = false;
    std::vector<Queue> queues_;  // one for each thread
    std::vector<Copy> pool_;     // grows to what was pending at a time, and stays
    unsigned unused_ = kNone;
};

}  // namespace cuda_on_cpu
