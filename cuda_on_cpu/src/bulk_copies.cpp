#include "bulk_copies.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "memory.hpp"

namespace cuda_on_cpu {

namespace {

template <class Word>
void combine_words(const Combine& combine, void* destination, const void* source, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(Word)) {
        Word value;
        std::memcpy(&value, static_cast<const char*>(source) + at, sizeof value);
        const std::atomic_ref<Word> place(*reinterpret_cast<Word*>(static_cast<char*>(destination) + at));
        Word there = place.load();
        while (!place.compare_exchange_weak(there, static_cast<Word>(combine.result(there, value)))) {
        }
    }
}

// Combines each element atomically.
void combine_all(const Combine& combine, void* destination, const void* source, std::size_t bytes) {
    switch (combine.element_size) {
        case 2:
            return combine_words<std::uint16_t>(combine, destination, source, bytes);
        case 4:
            return combine_words<std::uint32_t>(combine, destination, source, bytes);
        default:
            return combine_words<std::uint64_t>(combine, destination, source, bytes);
    }
}

}  // namespace

void BulkLoads::Load::carry_out() const {
    if (combine.result != nullptr) {
        combine_all(combine, shared, data.empty() ? static_cast<const void*>(map.address) : data.data(),
                    map.box_bytes());
    } else if (!data.empty()) {
        std::memcpy(shared, data.data(), data.size());
    } else {
        map.load(column, row, shared);
    }
}

void BulkLoads::clear() {
    ended_.store(false, std::memory_order_relaxed);
    if (!has_loads_) return;
    const std::scoped_lock lock(mutex_);
    loads_.clear();
    has_loads_ = false;
}

bool BulkLoads::add(const Load& load) {
    const std::scoped_lock lock(mutex_);
    if (ended_) return false;
    if (load.combine.result == nullptr) fill(load.shared, load.map.box_bytes(), kSharedPoison);
    loads_.push_back(load);
    has_loads_ = true;
    return true;
}

bool BulkLoads::ended() {
    const std::scoped_lock lock(mutex_);
    return ended_;
}

std::vector<BulkLoads::Load> BulkLoads::take(const std::vector<std::uint64_t*>& barriers) {
    const std::scoped_lock lock(mutex_);
    const auto awaited = [&](const Load& load) {
        return std::find(barriers.begin(), barriers.end(), load.barrier) != barriers.end();
    };
    std::vector<Load> taken;
    std::copy_if(loads_.begin(), loads_.end(), std::back_inserter(taken), awaited);
    std::erase_if(loads_, awaited);
    return taken;
}

std::optional<BulkLoads::Load> BulkLoads::end(bool in_cluster) {
    if (!in_cluster && !has_loads_) {
        ended_.store(true, std::memory_order_relaxed);
        return std::nullopt;
    }
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    return loads_.empty() ? std::nullopt : std::optional(loads_.front());
}

void BulkStores::fence() {
    used_ = fenced_ = true;
    for (auto& [shared, bytes] : seen_)
        std::memcpy(bytes.data(), shared, bytes.size());
}

std::string BulkStores::add(unsigned thread, const TensorMap& map, int column, int row, const void* shared,
                            Combine combine) {
    used_ = true;
    if (!fenced_)
        return "no thread has called fence.proxy.async: what was written to shared memory need not be seen";
    std::vector<unsigned char>& seen = seen_[shared];
    if (seen.size() < map.box_bytes()) {
        const auto* bytes = static_cast<const unsigned char*>(shared);
        seen.assign(bytes, bytes + map.box_bytes());
    } else if (std::memcmp(seen.data(), shared, map.box_bytes()) != 0) {
        return "shared memory was written after the last fence.proxy.async: the new values need not be seen";
    }
    queues_[thread].stores.push_back({map, column, row, shared, seen, queues_[thread].group, combine});
    return "";
}

void BulkStores::commit(unsigned thread) {
    used_ = true;
    ++queues_[thread].group;
}

std::string BulkStores::wait(unsigned thread, unsigned pending, bool until_written) {
    Queue& queue = queues_[thread];
    if (pending > queue.group) return "";
    const unsigned end = queue.group - pending;
    for (Store& store : queue.stores) {
        if (store.group >= end) break;
        if (!store.read && std::memcmp(store.shared, store.data.data(), store.map.box_bytes()) != 0)
            return "shared memory was written while a bulk store read it: before the store all threads that "
                   "write must "
                   "have done so, and after it they must wait (cp.async.bulk.wait_group.read)";
        store.read = true;
    }
    while (until_written && !queue.stores.empty() && queue.stores.front().group < end) {
        const Store& store = queue.stores.front();
        if (store.combine.result != nullptr) {
            combine_all(store.combine, store.map.address, store.data.data(), store.map.box_bytes());
        } else {
            store.map.store(store.column, store.row, store.data, store.shared);
        }
        queue.stores.pop_front();
    }
    return "";
}

std::string BulkStores::finish(unsigned thread) {
    const auto found = queues_.find(thread);
    if (found == queues_.end()) return "";
    Queue& queue = found->second;
    const auto unread = std::count_if(queue.stores.begin(), queue.stores.end(),
                                      [](const Store& store) { return !store.read; });
    if (unread > 0)
        return "this thread has ended while " + std::to_string(unread) +
               " bulk store(s) of its own read shared memory: it must wait for them "
               "(cp.async.bulk.wait_group.read)";
    return wait(thread, 0, true);
}

}  // namespace cuda_on_cpu
