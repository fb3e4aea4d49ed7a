// Starts other programs and waits for them. Arguments are passed unchanged, without a shell.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuda_on_cpu {

// The destination of its standard error output.
enum class Errors { own, with_output, nowhere };

struct ChildProgram {
    std::vector<std::string> arguments;   // the first is the program, looked up in PATH if it has no slash
    std::vector<std::string> settings{};  // "NAME=VALUE"; replaces this process's own
    // Empty: this process's own input.
    std::string input_file{};
    // std::nullopt: this process's own output.
    std::optional<int> output{};
    Errors errors = Errors::own;
    // A process group of its own, so that the program and its children can be ended together.
    bool own_group = false;
    // Signals that it should not ignore.
    const sigset_t* default_signals = nullptr;
    // Null: the same as in this process.
    const sigset_t* blocked_signals = nullptr;
};

// Sets `child`. Returns 0, or the error number if the program cannot be started.
int start_child(const ChildProgram& program, pid_t& child);

// The exit code of a child that has ended, or 128 + n if signal n ended it; std::nullopt while it
// runs.
std::optional<int> exit_code_if_ended(pid_t child);
int wait_for_child(pid_t child);

// A pipe for the output of a child. The child inherits only the descriptors that its ChildProgram
// names.
class OutputPipe {
  public:
    OutputPipe();  // throws std::system_error
    ~OutputPipe();
    OutputPipe(const OutputPipe&) = delete;
    OutputPipe& operator=(const OutputPipe&) = delete;

    int reading_end() const { return ends_[0]; }
    int writing_end() const { return ends_[1]; }
    // Must be called in this process, too, before the end of the output can be read.
    void close_writing_end();
    // Waits for the next output and returns it; empty at the end.
    std::string_view read_some();

  private:
    std::array<int, 2> ends_{-1, -1};
    std::array<char, 4096> buffer_{};
};

struct ChildResult {
    // The error number if the program could not be started.
    int error = 0;
    int exit_code = 127;
    // Set by read_child.
    std::string output{};
};

ChildResult run_child(const ChildProgram& program);
// Also returns its standard output.
ChildResult read_child(const ChildProgram& program);

}  // namespace cuda_on_cpu
