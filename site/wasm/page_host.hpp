// What page_host.cpp and contexts.cpp count.
#pragma once

#include <cstdint>

namespace cuda_on_cpu {

struct RunSeen {
    unsigned long long blocks = 0;    // that have run
    unsigned long long threads = 0;   // CUDA threads that have started
    unsigned long long switches = 0;  // from one stack to another one
};
extern RunSeen run_seen;

}  // namespace cuda_on_cpu
