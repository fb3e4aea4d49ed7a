# Where kernels run: `gpu` (nvcc) or `cpu` (cuda_on_cpu). Everything that differs between the two is in this file
# and in Course.cmake; no target asks.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

# -O2, not CMake's -O3: kernels on the CPU gain nothing from more, and the build takes half as long again.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# The nvcc that cuda_on_cpu brings may be the first in PATH: it compiles for the CPU.
function(course_is_nvcc_for_gpus result nvcc)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "cuda_on_cpu")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(COURSE_NVCC nvcc PATHS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin VALIDATOR course_is_nvcc_for_gpus)
find_program(COURSE_NVIDIA_SMI nvidia-smi)
mark_as_advanced(COURSE_NVCC COURSE_NVIDIA_SMI)

set(gpu_present FALSE)
if(COURSE_NVIDIA_SMI)
  execute_process(COMMAND ${COURSE_NVIDIA_SMI} -L RESULT_VARIABLE result OUTPUT_VARIABLE gpus ERROR_QUIET)
  if(result EQUAL 0 AND gpus MATCHES "GPU 0")
    set(gpu_present TRUE)
  endif()
endif()

if(COURSE_NVCC AND gpu_present)
  set(default_backend gpu)
else()
  set(default_backend cpu)
endif()
set(COURSE_BACKEND ${default_backend} CACHE STRING "Where kernels run: cpu or gpu")
set_property(CACHE COURSE_BACKEND PROPERTY STRINGS cpu gpu)
if(NOT COURSE_BACKEND MATCHES "^(cpu|gpu)$")
  message(FATAL_ERROR "COURSE_BACKEND is '${COURSE_BACKEND}'; expected cpu or gpu")
endif()

if(COURSE_BACKEND STREQUAL "gpu")
  if(NOT COURSE_NVCC)
    message(FATAL_ERROR "COURSE_BACKEND=gpu needs the CUDA Toolkit, but nvcc was not found. "
                        "Install it, or set COURSE_BACKEND=cpu.")
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${COURSE_NVCC})
  endif()
  # One list for the whole build; no target names an architecture of its own (but see course_hopper_library).
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    if(gpu_present)
      set(architectures native)
    else()
      set(architectures 75 80 86 89 90)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures to build for")
  endif()
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -lineinfo" CACHE STRING "nvcc's options in Release; -lineinfo: profilers show source lines")
  enable_language(CUDA)
  # As nvcc does by itself: assert() in a kernel stops it, in Release too.
  string(REPLACE "-DNDEBUG" "" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc 12 speaks C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit REQUIRED)
endif()
message(STATUS "Kernels run on: ${COURSE_BACKEND}")

# What compiles the kernels, for the records: "nvcc 13.0.88" or "GNU 12.2.0".
if(COURSE_BACKEND STREQUAL "gpu")
  set(COURSE_COMPILER "nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
else()
  set(COURSE_COMPILER "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

set(COURSE_SANITIZE "" CACHE STRING "Host sanitizers for every target, e.g. address,undefined (cpu backend)")

option(COURSE_INSPECT "Watch every access of a kernel (cpu backend, g++)" OFF)
if(COURSE_INSPECT AND NOT (COURSE_BACKEND STREQUAL "cpu" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
  message(FATAL_ERROR "COURSE_INSPECT needs COURSE_BACKEND=cpu and g++; here are COURSE_BACKEND=${COURSE_BACKEND} and "
                      "${CMAKE_CXX_COMPILER_ID}")
endif()
if(COURSE_INSPECT AND COURSE_SANITIZE)
  message(FATAL_ERROR "COURSE_INSPECT and COURSE_SANITIZE=${COURSE_SANITIZE} instrument the same accesses: choose one")
endif()

# What every target of the course is compiled with. Warnings are errors, with both compilers; but not in what a learner writes,
# where a parameter that is not used yet is no news either.
add_library(course_options INTERFACE)
add_library(course::options ALIAS course_options)
set(exercise $<BOOL:$<TARGET_PROPERTY:COURSE_EXERCISE>>)
set(host_warnings -Wall -Wextra -Wpedantic -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND host_warnings -Wno-psabi)     # a note about what g++ 4.6 changed
  # The lines of an exercise say that they are another file's: g++ takes them for those of a header.
  list(APPEND host_warnings $<$<BOOL:$<TARGET_PROPERTY:COURSE_EXERCISE>>:-Wno-subobject-linkage>)
  list(APPEND host_warnings -Wno-restrict)  # g++ 12 sees overlap in "literal" + std::string (GCC bug 105651)
else()
  # Kernels ask for loops to be unrolled (#pragma unroll). That is a request to nvcc; clang++ warns when it does not.
  list(APPEND host_warnings -Wno-pass-failed)
endif()
target_compile_options(course_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${host_warnings};$<IF:${exercise},-Wno-unused;-Wno-unused-parameter,-Werror>>"
  # -Wpedantic would complain about the line markers in nvcc's own intermediate files.
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow;$<IF:${exercise},-Xcompiler=-Wno-unused$<COMMA>-Wno-unused-parameter;-diag-suppress=177$<COMMA>550,-Werror=all-warnings>;--extended-lambda;--expt-relaxed-constexpr>")
if(COURSE_BACKEND STREQUAL "cpu")
  # Kernels read floats as a float4 and bytes as words. nvcc takes that as it is meant; host compilers must be told.
  target_compile_options(course_options INTERFACE -fno-strict-aliasing)
endif()
# Exercises run with late stores, too (cuda_on_cpu/inspector/late_stores.cpp), where the calls that this takes are not answered otherwise;
# but not for a debugger, as they take optimised code.
set(COURSE_LATE_STORES OFF)
if(COURSE_BACKEND STREQUAL "cpu" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT COURSE_INSPECT AND NOT COURSE_SANITIZE
   AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(COURSE_LATE_STORES ON)
endif()
# gold links in half the time of ld.bfd, and comes with it.
if(COURSE_BACKEND STREQUAL "cpu")
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=gold COURSE_HAS_GOLD)
  if(COURSE_HAS_GOLD)
    add_link_options(-fuse-ld=gold)
  endif()
endif()
if(COURSE_INSPECT OR COURSE_LATE_STORES)
  include(${PROJECT_SOURCE_DIR}/cuda_on_cpu/cmake/InspectOptions.cmake)
endif()
if(COURSE_SANITIZE)
  target_compile_options(course_options INTERFACE
    -fsanitize=${COURSE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(course_options INTERFACE -fsanitize=${COURSE_SANITIZE})
  if(COURSE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(course_options INTERFACE -Wno-tsan)  # it does not know fences, which order nothing here by themselves
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With instrumented code in between, g++ 12 loses sight of what std::regex initialises (GCC bug 105562).
    target_compile_options(course_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
