// Waits until a test that needs no kernel has passed, and ends the program before the next one.
// exercise: day01/one_per_element
// expect: ended in the middle of|not yet
// added to: vector_add.cuh
#include <unistd.h>

#include <chrono>
#include <thread>

struct Leaver {
    Leaver() {
        std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            _exit(0);
        }).detach();
    }
};
static Leaver leaver;
