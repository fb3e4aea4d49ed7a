#include "missing.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace translator {
namespace {

struct Known {
    std::string_view prefix;  // of the header's name
    std::string_view advice;
};

constexpr std::string_view kNotOnCpu =
    "which does not exist on the CPU: leave out what needs it, or run the program with a GPU";

// The first one that fits.
constexpr Known kHeaders[] = {
    {"cudnn", "is of cuDNN, "},
    {"cusolverSp", "is of cuSOLVER for sparse matrices, "},
    {"cusolverRf", "is of cuSOLVER for sparse matrices, "},
    {"cusolverMg", "is of cuSOLVER over several GPUs, "},
    {"cublasXt", "is of cuBLAS over several GPUs, "},
    {"npp", "is of NPP, "},
    {"nvjpeg", "is of nvJPEG, "},
    {"nvml", "is of NVML, "},
    {"cupti", "is of CUPTI, "},
    {"nvshmem", "is of NVSHMEM, "},
    {"nvJitLink", "is of nvJitLink, "},
    {"cudla", "is of cuDLA, "},
    {"nvsci", "is of NvSci, "},
    {"optix", "is of OptiX, "},
    {"cub/",
     "is not among the headers of CUB that exist here: cuda_on_cpu/docs/libraries.md lists what does"},
    {"thrust/", "is of Thrust: apt-get install libthrust-dev"},
    {"cuda/",
     "is not among the headers of libcu++ that exist here (cuda/atomic, barrier, pipeline, ptx ...)"},
    {"cutlass/", "is of CUTLASS: give its directory, -I cutlass/include"},
    {"cute/", "is of CUTLASS: give its directory, -I cutlass/include"},
    {"opencv2/",
     "is of OpenCV: apt-get install libopencv-dev, and give nvcc $(pkg-config --cflags --libs "
     "opencv4)"},
    {"mpi.h",
     "is of MPI: apt-get install libopenmpi-dev, and give nvcc $(mpicxx --showme:compile) and "
     "$(mpicxx --showme:link)"},
    {"GL/", "is of OpenGL, with which kernels on the CPU share nothing"},
    {"GLFW/", "is of OpenGL, with which kernels on the CPU share nothing"},
    {"torch/",
     "is of PyTorch: give the directories of its headers, torch.utils.cpp_extension.include_paths()"},
    {"ATen/",
     "is of PyTorch: give the directories of its headers, torch.utils.cpp_extension.include_paths()"},
    {"nvbench/", "is of NVBench, "},
    {"helper_", "is of NVIDIA's samples: give their directory, -I cuda-samples/Common"},
    {"exception.h", "is of NVIDIA's samples: give their directory, -I cuda-samples/Common"},
    {"cutil", "is of the SDK of CUDA 4, which NVIDIA has withdrawn: replace its macros"},
};

// The libraries whose functions exist here in part, by the beginning of a function's name.
struct Library {
    std::string_view prefix, name;
};
constexpr Library kLibraries[] = {
    {"cublas", "cuBLAS"}, {"cusparse", "cuSPARSE"}, {"cusolver", "cuSOLVER"},
    {"cufft", "cuFFT"},   {"curand", "cuRAND"},     {"nccl", "NCCL"},
};

// Without the escape sequences of colours.
std::string plain(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\x1b') {
            result += text[i];
            continue;
        }
        while (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0)
            ++i;
    }
    return result;
}

// "a.cu:3:10: " as "a.cu:3"; empty if the line names no place.
std::string place_in(std::string_view line) {
    const std::size_t end = line.find(": ");
    if (end == std::string_view::npos) return "";
    std::string place(line.substr(0, end));
    const std::size_t column = place.rfind(':');
    if (column == std::string::npos) return "";
    const std::size_t number = place.rfind(':', column - 1);
    return number == std::string::npos ? place : place.substr(0, column);
}

// What lies between the first quotes of g++, in UTF-8 or ASCII, or of clang.
std::string_view quoted(std::string_view text) {
    for (const std::string_view open : {"\u2018", "'"}) {
        const std::size_t begin = text.find(open);
        if (begin == std::string_view::npos) continue;
        const std::string_view rest = text.substr(begin + open.size());
        const std::size_t end = std::min(rest.find("\u2019"), rest.find('\''));
        if (end != std::string_view::npos) return rest.substr(0, end);
    }
    return {};
}

std::string about_header(std::string_view header) {
    const std::string_view name = header.substr(header.starts_with("./") ? 2 : 0);
    for (const Known& known : kHeaders) {
        if (!name.starts_with(known.prefix)) continue;
        std::string sentence = "<" + std::string(header) + "> " + std::string(known.advice);
        if (sentence.ends_with(", ")) sentence += kNotOnCpu;
        return sentence;
    }
    return "";
}

std::string about_name(std::string_view name) {
    for (const Library& library : kLibraries) {
        if (name.starts_with(library.prefix) && name.size() > library.prefix.size())
            return "'" + std::string(name) + "' is not among what exists here of " +
                   std::string(library.name) + ": cuda_on_cpu/docs/libraries.md lists it";
    }
    return "";
}

}  // namespace

std::string about_missing(std::string_view errors) {
    const std::string text = plain(errors);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = std::string_view(text).substr(begin, end - begin);
        begin = end + 1;
        std::string sentence;
        constexpr std::string_view kFatal = "fatal error: ", kError = "error: ";
        if (const std::size_t at = line.find(kFatal); at != std::string_view::npos) {
            std::string_view rest = line.substr(at + kFatal.size());
            if (rest.find("file not found") != std::string_view::npos) {
                sentence = about_header(quoted(rest));
            } else if (const std::size_t colon = rest.find(": "); colon != std::string_view::npos) {
                sentence = about_header(rest.substr(0, colon));
            }
        } else if (const std::size_t other = line.find(kError); other != std::string_view::npos) {
            const std::string_view rest = line.substr(other + kError.size());
            if (rest.find("was not declared") != std::string_view::npos ||
                rest.find("does not name a type") != std::string_view::npos ||
                rest.find("undeclared identifier") != std::string_view::npos ||
                rest.find("unknown type name") != std::string_view::npos) {
                sentence = about_name(quoted(rest));
            } else if (rest.find(" \u2018cub\u2019") != std::string_view::npos ||
                       rest.find(" 'cub'") != std::string_view::npos) {
                sentence = "cub::" + std::string(quoted(rest)) +
                           " is not among what exists here of CUB: cuda_on_cpu/docs/libraries.md lists it";
            }
        }
        if (sentence.empty()) continue;
        const std::string place = place_in(line);
        return (place.empty() ? "" : place + ": ") + "error: " + sentence;
    }
    return "";
}

}  // namespace translator
