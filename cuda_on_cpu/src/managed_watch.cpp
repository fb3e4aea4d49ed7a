#include "managed_watch.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "cuda_on_cpu/spin_hint.h"
#include "current_device.hpp"
#include "environment.hpp"
#include "memory.hpp"
#include "pages.hpp"
#include "spin_lock.hpp"

namespace cuda_on_cpu {

namespace {

std::atomic<bool> shares_with_host{false};

// A page as it was before the first kernel that has changed it since the host's last wait.
struct ChangedPage {
    char* begin;
    std::unique_ptr<char[]> before;
    std::array<char, 64> kernel;
};

struct Changed {
    SpinLock lock;
    std::vector<ChangedPage> pages;
    bool closed = false;
    unsigned times_opened = 0;
};
// Never destroyed, because destructors of static objects may access managed memory.
Changed& changed() {
    static auto& only = *new Changed;
    return only;
}
std::atomic<std::size_t> count{0};  // of changed pages

void protect(const ChangedPage& page, int protection) {
    mprotect(page.begin, page_size(), protection);
}

// The caller holds the lock.
void open(Changed& all) {
    if (!all.closed) return;
    for (const ChangedPage& page : all.pages)
        protect(page, PROT_READ | PROT_WRITE);
    all.closed = false;
    ++all.times_opened;
}

template <class Function>
void for_each_watched_page(Function function) {
    constexpr std::size_t kMostAllocations = 32;
    std::size_t allocations = 0;
    for_each_live_allocation([&](const Allocation& allocation) {
        if (allocation.type != cudaMemoryTypeManaged || allocation.mapping == nullptr ||
            allocation.file >= 0 || ++allocations > kMostAllocations)
            return;
        char* const first = allocation.mapping + guard_size();
        char* const last = allocation.mapping + allocation.mapping_size - guard_size() - page_size();
        function(first);
        if (last != first) function(last);
    });
}

}  // namespace

void share_with_host() {
    if (!shares_with_host.load(std::memory_order_relaxed)) shares_with_host = true;
}

ManagedWatch::ManagedWatch(const std::string& kernel, bool watches) : kernel_(kernel) {
    static const bool wanted = environment().watches_managed && !is_debugged();
    if (!wanted || !watches || shares_with_host || several_devices() || !may_close_memory()) return;
    for_each_watched_page([this](char* page) {
        pages_.push_back({page, std::make_unique_for_overwrite<char[]>(page_size())});
        std::memcpy(pages_.back().before.get(), page, page_size());
    });
}

ManagedWatch::~ManagedWatch() {
    if (pages_.empty() || shares_with_host) return;
    for_each_watched_page([this](char* page) {
        const auto watched = std::ranges::find(pages_, page, &Page::begin);
        if (watched == pages_.end() || std::memcmp(watched->before.get(), page, page_size()) == 0) return;
        Changed& all = changed();
        const std::scoped_lock lock(all.lock);
        if (std::ranges::find(all.pages, page, &ChangedPage::begin) != all.pages.end()) return;
        all.pages.push_back({page, std::move(watched->before), {}});
        ChangedPage& added = all.pages.back();
        kernel_.copy(added.kernel.data(), added.kernel.size() - 1);
        count = all.pages.size();
    });
}

void open_changed_pages() {
    if (count == 0) return;
    Changed& all = changed();
    const std::scoped_lock lock(all.lock);
    open(all);
}

void close_changed_pages() {
    if (count == 0) return;
    Changed& all = changed();
    const std::scoped_lock lock(all.lock);
    for (const ChangedPage& page : all.pages)
        protect(page, PROT_NONE);
    all.closed = true;
}

void forget_changed_pages() {
    if (count == 0) return;
    Changed& all = changed();
    const std::scoped_lock lock(all.lock);
    open(all);
    all.pages.clear();
    count = 0;
}

void forget_changed_pages(const char* begin, std::size_t size) {
    if (count == 0) return;
    Changed& all = changed();
    const std::scoped_lock lock(all.lock);
    std::erase_if(all.pages, [=, &all](const ChangedPage& page) {
        if (page.begin < begin || page.begin >= begin + size) return false;
        if (all.closed) protect(page, PROT_READ | PROT_WRITE);
        return true;
    });
    count = all.pages.size();
}

ManagedAccess access_changed_page(const void* address, std::size_t bytes) {
    struct Tried {
        const void* address;
        unsigned times_opened;
    };
    constinit thread_local static Tried last{nullptr, 0};
    const auto* const byte = static_cast<const char*>(address);
    Changed& all = changed();
    const std::scoped_lock lock(all.lock);
    const auto found = std::ranges::find_if(all.pages, [=](const ChangedPage& page) {
        return byte >= page.begin && byte < page.begin + page_size();
    });
    if (found == all.pages.end() || !all.closed) {
        // Another thread may have opened the page between the access and this check, so the access
        // is repeated once.
        const bool again = last.address == address && last.times_opened == all.times_opened;
        last = {address, all.times_opened};
        return {!again, nullptr};
    }
    protect(*found, PROT_READ | PROT_WRITE);
    const auto offset = static_cast<std::size_t>(byte - found->begin);
    bytes = std::min(bytes, page_size() - offset);
    const bool is_changed = std::memcmp(found->before.get() + offset, byte, bytes) != 0;
    ++all.times_opened;
    // The name is used after the page has been forgotten.
    static std::array<char, 64> kernel;
    if (is_changed) {
        kernel = found->kernel;
        open(all);
        all.pages.clear();
    } else {
        all.pages.erase(found);
    }
    count = all.pages.size();
    return {true, is_changed ? kernel.data() : nullptr};
}

}  // namespace cuda_on_cpu
