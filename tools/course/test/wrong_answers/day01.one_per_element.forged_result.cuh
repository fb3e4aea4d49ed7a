// Says that a test has passed, and ends the program before one begins.
// exercise: day01/one_per_element
// expect: the program ended in the middle of them, with exit code 0
// added to: vector_add.cuh
#include <cstdio>
#include <cstdlib>

struct Forger {
    Forger() {
        std::puts("\x1e{\"event\":\"started\",\"test\":\"A.B\"}");
        std::puts("\x1e{\"event\":\"ended\",\"test\":\"A.B\",\"result\":\"passed\"}");
        std::puts("\x1e{\"event\":\"finished\",\"result\":\"passed\"}");
        std::fflush(stdout);
        std::exit(0);
    }
};
static Forger forger;
