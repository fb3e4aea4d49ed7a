# Tests of cuda_on_cpu: by itself, or as a part of the course, which runs them in parts and counts them from reports of its own.
#
#   cuda_on_cpu_test(NAME SOURCES ... [LIBRARIES ...] [LABEL ...] [OPTIMISATION -O0] [BOTH_ORDERS] [INSPECTED])
#     GoogleTest program. OPTIMISATION: of its kernels. BOTH_ORDERS: also as NAME.descending, lanes and warps last to first.
#     INSPECTED: every access of its kernels is watched
#   cuda_on_cpu_test_target(TARGET [OPTIONS...])   what a test is compiled with, for another target that has kernels
#
# Where these tests run is known by
#   CUDA_ON_CPU_TESTS_NVCC   they are compiled by nvcc, and ask whether a GPU agrees
#   CUDA_ON_CPU_INSPECT      the build watches every access of every kernel
#   CUDA_ON_CPU_SANITIZE     sanitizers, as in -fsanitize=
include_guard(DIRECTORY)

set(CUDA_ON_CPU_TESTS_NVCC OFF)
if(COMMAND course_test)
  set(CUDA_ON_CPU_INSPECT ${COURSE_INSPECT})
  set(CUDA_ON_CPU_SANITIZE ${COURSE_SANITIZE})
  if(COURSE_BACKEND STREQUAL "gpu")
    set(CUDA_ON_CPU_TESTS_NVCC ON)
  endif()

  function(cuda_on_cpu_test_target target)
    course_cuda_target(${target})
  endfunction()

  function(cuda_on_cpu_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "BOTH_ORDERS;INSPECTED" "LABEL;OPTIMISATION" "SOURCES;LIBRARIES")
    if(arg_OPTIMISATION)
      set(COURSE_KERNEL_OPTIMISATION ${arg_OPTIMISATION})
    endif()
    set(orders "")
    if(arg_BOTH_ORDERS)
      set(orders BOTH_ORDERS)
    endif()
    course_test(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES} LABEL "${arg_LABEL}" ${orders})
  endfunction()

  # As add_test; the course counts what such a test reports.
  function(cuda_on_cpu_add_test)
    course_add_test(${ARGV})
  endfunction()

  # What a test starts is built with it.
  function(cuda_on_cpu_built_with_tests)
    course_add_to_tests(${ARGN})
  endfunction()
  return()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/Translate.cmake)
include(GoogleTest)
find_package(GTest REQUIRED)

function(cuda_on_cpu_test_target target)
  target_link_libraries(${target} PUBLIC cuda_on_cpu PRIVATE cuda_on_cpu_options)
  cuda_on_cpu_translate(${target} ${ARGN})
endfunction()

function(cuda_on_cpu_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "BOTH_ORDERS;INSPECTED" "LABEL;OPTIMISATION" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE -fPIC)  # not -fPIE: some objects become part of a shared library, too
  if(arg_INSPECTED)
    set(options ${CUDA_ON_CPU_INSPECT_OPTIONS})
    target_compile_definitions(${name} PRIVATE CUDA_ON_CPU_INSPECT)
    target_link_libraries(${name} PRIVATE cuda_on_cpu_inspector)
  elseif(arg_OPTIMISATION)
    set(options $<$<CONFIG:Release>:${arg_OPTIMISATION}>)
  else()
    set(options $<$<CONFIG:Release>:-O1>)
  endif()
  cuda_on_cpu_test_target(${name} ${options})
  set(properties DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  gtest_discover_tests(${name} TEST_PREFIX ${name}. ${properties} PROPERTIES TIMEOUT 300 LABELS "${arg_LABEL}")
  if(arg_BOTH_ORDERS)
    # One OS thread is enough: the first run had blocks on several at the same time. Two properties, because
    # gtest_discover_tests would take a list of two variables apart.
    gtest_discover_tests(${name} TEST_PREFIX ${name}.descending. TEST_LIST ${name}_descending ${properties}
      PROPERTIES TIMEOUT 300 LABELS "${arg_LABEL}" ENVIRONMENT CUDA_ON_CPU_ORDER=descending
      ENVIRONMENT_MODIFICATION CUDA_ON_CPU_THREADS=set:1)
  endif()
endfunction()

function(cuda_on_cpu_built_with_tests)
endfunction()
