#include "range.hpp"

#ifdef COURSE_PYTHON_NVTX
#include <nvtx3/nvToolsExt.h>

#include <string>
#endif

namespace course_python {

#ifdef COURSE_PYTHON_NVTX

bool has_nvtx() {
    return true;
}

Range::Range(const char* name) {
    nvtxRangePushA((std::string("cuda_day_by_day.") + name).c_str());
}

Range::~Range() {
    nvtxRangePop();
}

#else

bool has_nvtx() {
    return false;
}

Range::Range(const char*) {}
Range::~Range() = default;

#endif

}  // namespace course_python
