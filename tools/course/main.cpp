#include "command_line.hpp"

int main(int argc, char** argv) {
    return course::tool::run_command_line(argc, argv);
}
