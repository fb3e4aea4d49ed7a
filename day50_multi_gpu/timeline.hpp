// When sweeps and copies run: events around each of them. For the figure of overlap; versions run
// without it otherwise.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "common/check/check.hpp"
#include "multi_gpu.hpp"

namespace day50 {

class Timeline {
  public:
    explicit Timeline(Domain& domain);
    ~Timeline();
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    // What is enqueued in a stream of the rank between construction and destruction. Does nothing
    // for a domain without a timeline. The rank's device is the current one.
    class Span {
      public:
        Span(const Domain& domain, const Rank& rank, cudaStream_t stream, const char* what)
            : timeline_(domain.timeline), stream_(stream) {
            if (timeline_ != nullptr) timeline_->begin(rank, stream, what);
        }
        ~Span() {
            if (timeline_ != nullptr) timeline_->end(stream_);
        }
        Span(const Span&) = delete;
        Span& operator=(const Span&) = delete;

      private:
        Timeline* timeline_;
        cudaStream_t stream_;
    };

    struct Bar {
        int rank = 0;
        std::string stream;  // "edges" or "middle"
        std::string what;
        double begin = 0;  // us since the first bar of all
        double end = 0;
    };
    // Waits for all devices. Events of two devices have no common clock. So the clock of each is
    // compared with that of rank 0's device: the time of an event between two others there is taken
    // as their mean.
    std::vector<Bar> bars();

  private:
    struct Timed {
        const Rank* rank;
        const char* stream;
        const char* what;
        cudaEvent_t begin;
        cudaEvent_t end;
    };
    struct Clock {
        cudaEvent_t event = nullptr;
        double time = 0;  // of the event, in us of rank 0's device
    };
    void begin(const Rank& rank, cudaStream_t stream, const char* what);
    void end(cudaStream_t stream);
    Clock clock_of(const Rank& rank, cudaEvent_t zero);
    cudaEvent_t new_event();

    Domain& domain_;
    std::vector<Timed> spans_;
    std::vector<cudaEvent_t> events_;
};

}  // namespace day50
