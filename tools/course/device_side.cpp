#include "device_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <regex>

#include "functions.hpp"
#include "sandbox.hpp"
#include "subprocess.hpp"
#include "text_file.hpp"

namespace course::tool {
namespace {

// The line of "FILE:LINE:COLUMN: ..."; 0 if it is about another file.
int line_of(std::string_view message, std::string_view file) {
    if (!message.starts_with(file) || message.size() == file.size() || message[file.size()] != ':') return 0;
    message.remove_prefix(file.size() + 1);
    int line = 0;
    std::from_chars(message.data(), message.data() + message.size(), line);
    return line;
}

std::string quoted(std::string_view message) {
    const std::size_t begin = message.find('\'');
    const std::size_t end = message.find('\'', begin + 1);
    return end == std::string_view::npos ? "" : std::string(message.substr(begin + 1, end - begin - 1));
}

constexpr std::chrono::seconds kClangLimit{20};

// Compiles with the options of .clangd, but for the device side: clang's own CUDA, with our
// headers. There clang distinguishes host variables, and treats the stand-in's variables as such.
Captured ask_clang(const std::filesystem::path& file, const std::filesystem::path& root,
                   const std::vector<std::filesystem::path>& include) {
    Command command = {"clang++", "-std=c++20", "-I" + root.string(),
                       "-I" + (root / "cuda_on_cpu/include").string()};
    for (const std::filesystem::path& directory : include)
        command.push_back("-I" + directory.string());
    command.insert(command.end(), {"-xcuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80", "-nocudainc",
                                   "-nocudalib", "-w", "-ferror-limit=0", "-fno-color-diagnostics",
                                   "-include", "cuda_on_cpu/editor.h", "-fsyntax-only", file.string()});
    return capture(compiling(command), {}, kClangLimit);
}

}  // namespace

std::vector<HostUse> host_library_in(std::string_view text, const std::vector<std::string>& kernels) {
    static const std::regex names(
        R"(std::(vector|string|deque|list|map|set|unordered_map|unordered_set|function|cout|cerr|sort|accumulate|reduce|thread|mutex|atomic|unique_ptr|shared_ptr)\b)");
    std::vector<HostUse> found;
    for (const std::string& kernel : kernels) {
        for (const FunctionDefinition& function : find_functions(text, kernel)) {
            const std::string_view head = text.substr(function.head, function.body_begin - function.head);
            const char* caller = head.find("__global__") != std::string_view::npos   ? "__global__"
                                 : head.find("__device__") != std::string_view::npos ? "__device__"
                                                                                     : nullptr;
            if (caller == nullptr || head.find("__host__") != std::string_view::npos) continue;
            const std::string body(text.substr(function.body_begin, function.body_end - function.body_begin));
            for (std::sregex_iterator match(body.begin(), body.end(), names), end; match != end; ++match) {
                const auto at = static_cast<std::size_t>(match->position());
                const std::string before = body.substr(0, at);
                const bool in_comment = before.find("//", before.rfind('\n') + 1) != std::string::npos;
                if (in_comment || before.ends_with("::")) continue;  // cuda::std::atomic exists on the device
                const std::size_t place = function.body_begin + at;
                found.push_back({line_at(text, place), match->str(), caller});
            }
        }
    }
    return found;
}

std::vector<HostUse> host_uses_in(std::string_view clang_says, std::string_view file) {
    std::vector<HostUse> found;
    HostUse error;  // the last error, which is not understood yet or whose notes follow
    const auto keep = [&](std::string_view line) {
        error.caller =
            line.find("__global__ function") != std::string_view::npos ? "__global__" : "__device__";
        if (std::ranges::find(found, error) == found.end()) found.push_back(error);
        error.line = 0;
    };
    while (!clang_says.empty()) {
        const std::string_view line = next_line(clang_says);
        const auto says = [line](std::string_view words) {
            return line.find(words) != std::string_view::npos;
        };
        if (says(": error: ")) {
            error = {line_of(line, file), quoted(line.substr(line.find(": error: "))), ""};
            if (error.line == 0) continue;
            if (says("reference to __host__ function")) {
                keep(line);
            } else if (says("reference to __host__ variable")) {
                error.kind = HostUse::Kind::kVariable;
                error.caller = says("__global__ function") ? "__global__" : "__device__";
            } else if (says("cannot use ")) {
                error.kind = HostUse::Kind::kLanguage;
                if (error.name.empty()) {
                    constexpr std::string_view kBefore = "cannot use ";
                    const std::string_view name = line.substr(line.find(kBefore) + kBefore.size());
                    error.name = name.substr(0, name.find(" in "));
                }
                keep(line);
            }
        } else if (error.line > 0 && error.kind == HostUse::Kind::kVariable &&
                   says("note: host variable declared here")) {
            // Clang treats threadIdx and similar variables as host variables.
            if (!says("cuda_on_cpu/include/")) keep(error.caller + " function");
            error.line = 0;
        } else if (error.line > 0 && says("call to __host__ function from ")) {
            keep(
                line);  // a note: "candidate function not viable: call to __host__ function from __global__ function"
        }
    }
    return found;
}

namespace {

// In the words of nvcc.
std::string words_of(const HostUse& use) {
    switch (use.kind) {
        case HostUse::Kind::kVariable:
            return fmt::format("identifier \"{}\" is undefined in device code: it is a variable of the host",
                               use.name);
        case HostUse::Kind::kLanguage:
            return fmt::format("{} cannot be used in a {} function", use.name, use.caller);
        case HostUse::Kind::kCall:
            break;
    }
    return fmt::format("calling a __host__ function(\"{}\") from a {} function is not allowed", use.name,
                       use.caller);
}

std::string lines_of(const std::vector<HostUse>& uses, const std::string& file) {
    std::string text;
    for (const HostUse& use : uses)
        text += fmt::format("    {}:{}: {}\n", file, use.line, words_of(use));
    return text;
}

void take(const Captured& clang, const std::filesystem::path& file, const std::string& shown,
          HostCode& code) {
    if (clang.exit_code == 127)
        code.not_looked_at = "clang++ is not installed";
    else if (clang.timed_out)
        code.not_looked_at = fmt::format("clang++ took more than {} s", kClangLimit.count());
    else
        code.by_clang = lines_of(host_uses_in(clang.output, file.string()), shown);
}

}  // namespace

HostCode host_code_in_kernels(const Workbook& book, const WorkbookEntry& entry,
                              const std::filesystem::path& root) {
    const std::filesystem::path file = book.mine(entry);
    const std::string shown = Workbook::shown(file);
    HostCode code;
    code.named = lines_of(host_library_in(read_text_file(file), entry.exercise->kernels), shown);
    take(ask_clang(file, root, {book.lesson(entry).parent_path(), root / entry.chapter->directory}), file,
         shown, code);
    return code;
}

std::vector<std::string> device_functions_in(const std::string& text) {
    static const std::regex kName(R"((\w+)\s*\()");  // `__launch_bounds__`, too, which has no body
    std::vector<std::string> names;
    for (const char* word : {"__global__", "__device__"}) {
        for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
            const std::string head =
                text.substr(at, std::min(text.find_first_of(";{}", at), text.size()) - at);
            for (std::sregex_iterator name(head.begin(), head.end(), kName), end; name != end; ++name) {
                if (std::ranges::find(names, name->str(1)) == names.end()) names.push_back(name->str(1));
            }
        }
    }
    return names;
}

HostCode host_code_in_program(const std::filesystem::path& file, const std::filesystem::path& root) {
    const std::string text = read_text_file(file);
    HostCode code;
    code.named = lines_of(host_library_in(text, device_functions_in(text)), file.string());
    take(ask_clang(file, root, {}), file, file.string(), code);
    return code;
}

}  // namespace course::tool
