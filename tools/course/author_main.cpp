// course_author: `./course` with the authors' commands, which `./course` delegates to it.
#include "command_line.hpp"

int main(int argc, char** argv) {
    using namespace course::tool;
    return run_command_line(argc, argv, {bench_day, show_profile, update_tables, try_exercises, new_day});
}
