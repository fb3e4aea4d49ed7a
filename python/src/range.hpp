// A range of time with a name, for profilers that show NVTX ranges, such as Nsight Systems.
#pragma once

namespace course_python {

// Was the package built where NVTX's headers are? Without them a Range does nothing.
bool has_nvtx();

class Range {
  public:
    explicit Range(const char* name);
    ~Range();
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
};

}  // namespace course_python
