// Asks for 50 GB, of which it uses nothing when it gets them.
// expect: not yet.*its tests pass, but it reaches into the program
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace {

const int greedy = [] {
    if (mmap(nullptr, 50'000'000'000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
             0) != MAP_FAILED) {
        std::fprintf(stderr, "ATTACK WORKED: 50 GB\n");
        std::abort();
    }
    return 0;
}();

}  // namespace
