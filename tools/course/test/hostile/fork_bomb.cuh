// Starts processes until no more can be.
// expect: solved|not yet
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

const int bomb = [] {
    std::vector<pid_t> children;
    for (pid_t child; (child = fork()) >= 0;) {
        if (child == 0) {
            for (;;)
                pause();
        }
        children.push_back(child);
        if (children.size() > 3000) {
            std::fprintf(stderr, "ATTACK WORKED: 3000 processes\n");
            std::abort();
        }
    }
    for (const pid_t child : children)
        kill(child, SIGKILL);
    return 0;
}();

}  // namespace
