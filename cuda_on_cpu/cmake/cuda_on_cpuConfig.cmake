# find_package(cuda_on_cpu): CUDA C++ that runs on the CPU, in a project of C++ alone.
#
#   cuda_on_cpu_add_executable(NAME SOURCE...)   a program; its .cu files are CUDA C++
#   cuda_on_cpu::cuda_on_cpu                     headers and library, for .cpp files that call the runtime
#   cuda_on_cpu::cublas, cufft, curand, cusolver, cusparse, nccl  libraries of the toolkit, where this host has what they stand on
#
# Projects with the language CUDA need none of this: -DCMAKE_CUDA_COMPILER=<prefix>/lib/cuda_on_cpu/bin/nvcc.
get_filename_component(CUDA_ON_CPU_HOME "${CMAKE_CURRENT_LIST_DIR}/../../cuda_on_cpu" ABSOLUTE)
include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET cuda_on_cpu::cuda_on_cpu)
  add_library(cuda_on_cpu::cuda_on_cpu STATIC IMPORTED)
  set_target_properties(cuda_on_cpu::cuda_on_cpu PROPERTIES
    IMPORTED_LOCATION "${CUDA_ON_CPU_HOME}/lib64/libcudart_static.a"
    INTERFACE_INCLUDE_DIRECTORIES "${CUDA_ON_CPU_HOME}/include"
    INTERFACE_COMPILE_DEFINITIONS CUDA_ON_CPU
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_COMPILE_OPTIONS -fno-strict-aliasing
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()

# cuda_on_cpu_library(NAME [PROJECT PACKAGE LIBRARY...])   LIBRARY...: of the host, of a project, in a package of Debian
function(cuda_on_cpu_library name)
  set(archive "${CUDA_ON_CPU_HOME}/lib64/libcuda_on_cpu_${name}.a")
  if(TARGET cuda_on_cpu::${name} OR NOT EXISTS "${archive}")
    return()
  endif()
  set(found "")
  foreach(library IN LISTS ARGN)
    if(library STREQUAL "${ARGV1}" OR library STREQUAL "${ARGV2}")
      continue()
    endif()
    find_library(CUDA_ON_CPU_HAS_${library} ${library})
    mark_as_advanced(CUDA_ON_CPU_HAS_${library})
    if(NOT CUDA_ON_CPU_HAS_${library})
      message(STATUS "cuda_on_cpu: there is no cuda_on_cpu::${name}: ${ARGV1}, on which it stands, was not found (Debian: ${ARGV2})")
      return()
    endif()
    list(APPEND found "${CUDA_ON_CPU_HAS_${library}}")
  endforeach()
  add_library(cuda_on_cpu::${name} STATIC IMPORTED)
  set_target_properties(cuda_on_cpu::${name} PROPERTIES
    IMPORTED_LOCATION "${archive}"
    INTERFACE_LINK_LIBRARIES "cuda_on_cpu::cuda_on_cpu;${found}")
endfunction()
cuda_on_cpu_library(cublas OpenBLAS libopenblas-dev openblas)
cuda_on_cpu_library(cufft FFTW libfftw3-dev fftw3 fftw3f)
cuda_on_cpu_library(curand)
cuda_on_cpu_library(cusolver OpenBLAS libopenblas-dev openblas)
cuda_on_cpu_library(cusparse)
cuda_on_cpu_library(nccl)

function(cuda_on_cpu_add_executable name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE cuda_on_cpu::cuda_on_cpu)
  set(cuda_sources ${ARGN})
  list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
  if(NOT cuda_sources)
    return()
  endif()
  # -O1: kernels gain little from more. -UNDEBUG: assert() in a kernel stops it, as with nvcc.
  set_source_files_properties(${cuda_sources} PROPERTIES LANGUAGE CXX
    COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O1>;-gdwarf-4;-g1;-march=native;-fstack-protector-strong;-fstack-clash-protection;-UNDEBUG")
  set_target_properties(${name} PROPERTIES
    CXX_COMPILER_LAUNCHER "${CUDA_ON_CPU_HOME}/bin/cuda_on_cpu_compile;--headers=${CMAKE_BINARY_DIR}/kernel_headers")
endfunction()
