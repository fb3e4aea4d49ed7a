// Prints without end.
// expect: not yet.*printed more than
#include <cstdio>

namespace {

const int loud = [] {
    for (;;)
        std::puts("and so on and so on");
    return 0;
}();

}  // namespace
