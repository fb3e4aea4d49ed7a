// With CUDA_ON_CPU_MANAGED=watched: managed memory that the host accesses between the launch of a
// kernel and the wait for it. Here the kernel has run already; on a GPU the host may find the old
// values, or overwrite the new ones.
//
// The first and the last page of each allocation are compared before and after a kernel. Pages that
// it has changed are closed to the host, as device memory is, until the host waits for anything.
// The access that faults is a mistake only if the kernel has changed these very bytes: a kernel and
// the host may work on different parts of an array at the same time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cuda_on_cpu {

// Exists while a kernel runs.
class ManagedWatch {
  public:
    // `watches`: false for a kernel that may exchange values with the host while it runs.
    ManagedWatch(const std::string& kernel, bool watches);
    ~ManagedWatch();
    ManagedWatch(const ManagedWatch&) = delete;
    ManagedWatch& operator=(const ManagedWatch&) = delete;

    struct Page {
        char* begin;
        std::unique_ptr<char[]> before;
    };

  private:
    const std::string& kernel_;
    std::vector<Page> pages_;
};

// Called when the first device work begins, and when the last one has ended.
void open_changed_pages();
void close_changed_pages();
// The host has waited for some work, or a function of the host runs in a stream: either may be
// meant to follow the kernel.
void forget_changed_pages();
// The pages from `begin` on are given back.
void forget_changed_pages(const char* begin, std::size_t size);

// For a signal handler: whether an access to a closed page may go on; if the kernel has changed
// what is accessed, its name, else null.
struct ManagedAccess {
    bool goes_on;
    const char* kernel;
};
// `bytes`: at least how many are accessed.
ManagedAccess access_changed_page(const void* address, std::size_t bytes);

}  // namespace cuda_on_cpu
