// An event that processes share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver_types.h"

namespace cuda_on_cpu {

// The shared state of an event: how often it has been recorded, how many of these records have been
// reached, and which process made the last one.
struct SharedRecords {
    std::atomic<std::uint64_t> issued;
    std::atomic<std::uint64_t> reached;
    std::atomic<std::uint64_t> recorder;  // the value of identity_of_process()
};

// A page with this state, which other processes can map until the last event that uses it in this
// process is destroyed.
class SharedEvent {
  public:
    static std::shared_ptr<SharedEvent> make();
    static std::shared_ptr<SharedEvent> open(const char* function, const void* handle);
    ~SharedEvent();
    SharedEvent(const SharedEvent&) = delete;
    SharedEvent& operator=(const SharedEvent&) = delete;

    void tell(void* handle) const;
    std::uint64_t issue();
    void reach(std::uint64_t record);
    std::uint64_t issued() const { return records_->issued; }
    bool has_reached(std::uint64_t record) const { return records_->reached >= record; }
    // The recording process ended before the record was reached, so it will never be reached.
    bool is_lost(std::uint64_t record) const;
    // Waits until the record is reached. Reports an error of `function` if the record is lost.
    cudaError_t wait_for(const char* function, std::uint64_t record) const;
    cudaError_t refuse_lost(const char* function) const;

  private:
    SharedEvent(int file, SharedRecords* records) : file_(file), records_(records) {}
    int file_;
    SharedRecords* records_;
};

}  // namespace cuda_on_cpu
