#include "process.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

extern char** environ;

namespace translator {

namespace {

// `output`: where its standard output goes, if not to ours.
int run(const std::vector<std::string>& arguments, std::string* output) {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    int ends[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output != nullptr) {
        if (pipe(ends) != 0) return 127;
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_addclose(&actions, ends[0]);
        posix_spawn_file_actions_addclose(&actions, ends[1]);
    }
    pid_t child = 0;
    const int error = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (output != nullptr) {
        close(ends[1]);
        char some[4096];
        for (ssize_t n = 0; (n = read(ends[0], some, sizeof some)) > 0;)
            output->append(some, static_cast<std::size_t>(n));
        close(ends[0]);
    }
    if (error != 0) {
        std::fprintf(stderr, "cuda_on_cpu_compile: cannot run %s: %s\n", pointers[0], std::strerror(error));
        return 127;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return 127;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
    return run(arguments, nullptr);
}

int run_program(const std::vector<std::string>& arguments, std::string& output) {
    return run(arguments, &output);
}

}  // namespace translator
