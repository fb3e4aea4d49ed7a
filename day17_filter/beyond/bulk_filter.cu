#include "bulk_filter.cuh"
#include "bulk_filter.hpp"

namespace day17 {

void launch_bulk_filter(const std::int32_t* in, std::size_t n, std::int32_t threshold, std::int32_t* out,
                        Count* count, Workspace& workspace, cudaStream_t stream) {
    launch_rounds(in, n, ElementsBelow{threshold}, out, count,
                  reinterpret_cast<Progress*>(workspace.progress()), workspace.words(), stream);
}

void launch_bulk_unique(const std::int32_t* in, std::size_t n, std::int32_t* out, Count* count,
                        Workspace& workspace, cudaStream_t stream) {
    launch_rounds(in, n, FirstOfRuns{}, out, count, reinterpret_cast<Progress*>(workspace.progress()),
                  workspace.words(), stream);
}

}  // namespace day17
