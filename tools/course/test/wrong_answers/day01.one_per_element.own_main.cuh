// A main() that runs no test, and reports success.
// exercise: day01/one_per_element
// expect: multiple definition of 'main'
// added to: vector_add.cuh
#include <cstdio>
#include <cstdlib>

int main() {
    const char* const key = std::getenv("COURSE_TEST_KEY");
    std::printf("\x1e%s{\"event\":\"started\",\"test\":\"A.B\"}\n", key);
    std::printf("\x1e%s{\"event\":\"ended\",\"test\":\"A.B\",\"result\":\"passed\"}\n", key);
    std::printf("\x1e%s{\"event\":\"finished\",\"result\":\"passed\"}\n", key);
    std::fflush(stdout);
    return 0;
}
