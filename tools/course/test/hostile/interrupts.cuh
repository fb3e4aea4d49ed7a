// Ends as if the teacher had pressed Ctrl-C, with words that a build has when he did.
// expect: not yet
#pragma message "interrupted by user"
#include <unistd.h>

namespace {
const int interrupted = [] {
    _exit(130);
    return 0;
}();
}  // namespace
