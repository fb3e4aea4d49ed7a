// Collects the counts of the recorders of all OS threads, launch by launch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "observer.hpp"
#include "recorder.hpp"

namespace cuda_on_cpu::inspector {

// The launches of one shape are one entry of the result.
using Shape = std::tuple<std::string, unsigned, std::size_t>;

class Inspector final : public LaunchObserver {
  public:
    explicit Inspector(const InspectionOptions& options) : options_(options) {}

    void begin_launch(LaunchState& launch) override;
    BlockObserver* watch(LaunchState& launch, uint3 block) override;
    void end_launch(LaunchState& launch) override;
    void launch_failed(LaunchState& launch, cudaError_t error, const std::string& message,
                       Site site) override;
    void host_awaits_copy(std::size_t bytes) override;

    // The results so far, with source lines.
    Inspection result();

  private:
    bool chosen(uint3 block, const LaunchConfiguration& launch) const;
    void keep_longest_trace(LaunchRecord& record);

    InspectionOptions options_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<LaunchRecord>> launches_;
    // Of the launches that have ended.
    std::map<Shape, LaunchRecord*> longest_traces_;
    std::uint64_t awaited_copies_ = 0;
    std::uint64_t awaited_copy_bytes_ = 0;
};

// The results of the running inspection, which continues.
Inspection result_so_far();

}  // namespace cuda_on_cpu::inspector
