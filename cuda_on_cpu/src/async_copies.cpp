#include "async_copies.hpp"

#include <cstring>

#include "block.hpp"
#include "memory.hpp"

namespace cuda_on_cpu {

AsyncCopies::AsyncCopies() : queues_(kMaxThreads) {}

void AsyncCopies::clear() {
    used_ = false;
    queues_.assign(kMaxThreads, Queue{});
    pool_.clear();
    unused_ = kNone;
}

void AsyncCopies::issue(unsigned thread, void* shared, const std::array<unsigned char, kMaxBytes>& data,
                        unsigned bytes) {
    used_ = true;
    fill(shared, bytes, kSharedPoison);
    unsigned index = unused_;
    if (index != kNone) {
        unused_ = pool_[index].next;
    } else {
        index = static_cast<unsigned>(pool_.size());
        pool_.emplace_back();
    }
    Queue& queue = queues_[thread];
    pool_[index] = Copy{shared, data, bytes, queue.group, kNone};
    (queue.oldest == kNone ? queue.oldest : pool_[queue.newest].next) = index;
    queue.newest = index;
}

void AsyncCopies::commit(unsigned thread) {
    used_ = true;
    ++queues_[thread].group;
}

void AsyncCopies::wait(unsigned thread, unsigned pending) {
    Queue& queue = queues_[thread];
    if (pending > queue.group) return;
    const unsigned end = queue.group - pending;
    while (queue.oldest != kNone && pool_[queue.oldest].group < end)
        complete_oldest(queue);
}

void AsyncCopies::finish(unsigned thread) {
    complete(queues_[thread]);
}

void AsyncCopies::move_to(Batch& batch, unsigned thread) {
    append(batch, queues_[thread]);
}

void AsyncCopies::append(Batch& batch, Batch& later) {
    if (later.oldest == kNone) return;
    (batch.oldest == kNone ? batch.oldest : pool_[batch.newest].next) = later.oldest;
    batch.newest = later.newest;
    later.oldest = kNone;
}

void AsyncCopies::complete(Batch& batch) {
    while (batch.oldest != kNone)
        complete_oldest(batch);
}

void AsyncCopies::complete_oldest(Batch& batch) {
    const unsigned index = batch.oldest;
    Copy& copy = pool_[index];
    std::memcpy(copy.shared, copy.data.data(), copy.bytes);
    batch.oldest = copy.next;
    copy.next = unused_;
    unused_ = index;
}

}  // namespace cuda_on_cpu
