#include "common/bench/build_info.hpp"

#include <cstdlib>

#include "course_commit.hpp"

namespace course {

std::string commit() {
    const char* override = std::getenv("COURSE_COMMIT");
    return override != nullptr && *override != '\0' ? override : kBuildCommit;
}

std::string compiler() {
    return COURSE_COMPILER;
}

bool is_release_build() {
#ifdef NDEBUG
    return true;
#else
    return false;
#endif
}

}  // namespace course
