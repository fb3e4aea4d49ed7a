#include "child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

extern char** environ;

namespace cuda_on_cpu {
namespace {

// The strings as posix_spawn takes them. They must outlive the result.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (std::string& text : strings)
        pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

// This process's environment, with the variables in `settings` replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& settings) {
    std::vector<std::string> variables = settings;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const std::string_view name_and_sign = text.substr(0, text.find('=') + 1);
        const bool is_set = std::any_of(settings.begin(), settings.end(), [&](const std::string& setting) {
            return setting.starts_with(name_and_sign);
        });
        if (!is_set) variables.emplace_back(text);
    }
    return variables;
}

int exit_code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int start_child(const ChildProgram& program, pid_t& child) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (!program.input_file.empty())
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, program.input_file.c_str(), O_RDONLY, 0);
    if (program.output) posix_spawn_file_actions_adddup2(&files, *program.output, STDOUT_FILENO);
    if (program.errors == Errors::with_output)
        posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    if (program.errors == Errors::nowhere)
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    int flags = program.own_group ? POSIX_SPAWN_SETPGROUP : 0;
    if (program.default_signals != nullptr) {
        posix_spawnattr_setsigdefault(&attributes, program.default_signals);
        flags |= POSIX_SPAWN_SETSIGDEF;
    }
    if (program.blocked_signals != nullptr) {
        posix_spawnattr_setsigmask(&attributes, program.blocked_signals);
        flags |= POSIX_SPAWN_SETSIGMASK;
    }
    posix_spawnattr_setflags(&attributes, static_cast<short>(flags));

    std::vector<std::string> arguments = program.arguments;
    std::vector<std::string> environment = environment_with(program.settings);
    const int error = arguments.empty()
                          ? ENOENT
                          : posix_spawnp(&child, arguments[0].c_str(), &files, &attributes,
                                         pointers_to(arguments).data(), pointers_to(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

std::optional<int> exit_code_if_ended(pid_t child) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) return 127;  // as in wait_for_child, if SIGCHLD is ignored
    if (ended != child) return std::nullopt;
    return exit_code_of(status);
}

int wait_for_child(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return 127;
    }
    return exit_code_of(status);
}

OutputPipe::OutputPipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
}

OutputPipe::~OutputPipe() {
    close(ends_[0]);
    close_writing_end();
}

void OutputPipe::close_writing_end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
}

std::string_view OutputPipe::read_some() {
    ssize_t count = 0;
    do {
        count = read(ends_[0], buffer_.data(), buffer_.size());
    } while (count < 0 && errno == EINTR);
    return {buffer_.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

ChildResult run_child(const ChildProgram& program) {
    ChildResult result;
    pid_t child = 0;
    result.error = start_child(program, child);
    if (result.error == 0) result.exit_code = wait_for_child(child);
    return result;
}

ChildResult read_child(const ChildProgram& program) {
    OutputPipe pipe;
    ChildProgram writing = program;
    writing.output = pipe.writing_end();
    ChildResult result;
    pid_t child = 0;
    result.error = start_child(writing, child);
    if (result.error != 0) return result;
    pipe.close_writing_end();
    for (std::string_view part = pipe.read_some(); !part.empty(); part = pipe.read_some())
        result.output += part;
    result.exit_code = wait_for_child(child);
    return result;
}

}  // namespace cuda_on_cpu
