// course_author: `./course`, and the commands that it hands over.
#include "command_line.hpp"

int main(int argc, char** argv) {
    using namespace course::tool;
    return run_command_line(argc, argv, {bench_day, update_tables, try_exercises, new_day});
}
