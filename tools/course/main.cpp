#include "build.hpp"
#include "command_line.hpp"
#include "subprocess.hpp"

namespace {

using namespace course::tool;

// Passes the arguments on to course_author, after building it if necessary.
int hand_over(const Checkout& checkout, int argc, const char* const* argv) {
    build_target(checkout, "course_author");
    Command command(argv, argv + argc);
    command.front() = checkout.program("course_author");
    return run(command);
}

}  // namespace

int main(int argc, char** argv) {
    const auto author = [=](const Checkout& checkout, const auto&) {
        return hand_over(checkout, argc, argv);
    };
    return run_command_line(argc, argv, {author, author, author, author, author});
}
