// Uses 50 GB, of a kind that the limits of a process do not hold for.
// expect: not yet.*used more than 2 GB of memory
#include <sys/mman.h>

#include <cstring>

namespace {

const int greedy = [] {
    constexpr std::size_t kBytes = 50'000'000'000, kPart = 10'000'000;
    char* const memory = static_cast<char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (std::size_t at = 0; memory != MAP_FAILED && at < kBytes; at += kPart)
        std::memset(memory + at, 1, kPart);
    return 0;
}();

}  // namespace
