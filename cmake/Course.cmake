# The functions that make the course's targets.
#
#   course_library(NAME SOURCES ... [LIBRARIES ...] [QUICK])      library course_NAME, alias course::NAME; QUICK: host code whose speed does
#     not matter, and which brings its own precompiled headers
#   course_executable(NAME SOURCES ... [LIBRARIES ...] [ON_DEMAND])   program in <build>/bin; ON_DEMAND: built when it is asked for
#   course_test(NAME SOURCES ... [LIBRARIES ...] [LABEL ...] [SHARDS n] [BOTH_ORDERS] [TOGETHER] [THOROUGH])
#     GoogleTest program, whose tests ctest runs in n parts, as NAME.1of2; as many as make a part last less than about ten seconds.
#     TOGETHER: seven files are compiled as one, which reads the headers once; THOROUGH: part of the second half only
#   course_test_again(NAME VARIANT ENVIRONMENT ... [FILTER "..."])
#     the tests of NAME that match FILTER once more, as NAME.VARIANT, with these environment variables; on the CPU only
#   course_add_test(NAME ... [FAIL_ON regex] COMMAND ...)
#     as add_test; its outcome is reported, which ./course test counts. For other commands, and for programs of course_test once more
#   course_hopper_library(NAME SOURCES ... [LIBRARIES ...])      as course_library, for sm_90a's own instructions
#   course_day(TOPIC t TITLE "..." QUESTION "..." PART "..." [NEEDS day01 ...] [BEYOND_NEEDS day15 ...] CHAPTERS_4E "..." CHAPTERS_5E "..." HOURS n [BEYOND_HOURS n] [BESIDE "..." [BESIDE_VERSION "..."]]
#              [NO_COUNTERS "..."] [SOURCES ...] [LIBRARIES ...] [PEERS ...] [PROGRAM_LIBRARIES ...] [TEST_LIBRARIES ...] [TEST_SHARDS n]
#              [CLEAN_SIZES ...] [RANDOM n] [HOPPER] [DEVICE_LAUNCHES])
#     one day, from the files in its directory: the targets <directory>_program and <directory>_test, and <directory> for both; SOURCES: those of the lesson beside <topic>.cu and <topic>_reference.cpp;
#     TITLE to HOURS: the day's row on the front page. PART: the title of its part. NEEDS: the days that have to be read before it;
#     BEYOND_NEEDS: those that only its further versions need, which may come later in the course; Chapters are those of the book's 4th and 5th edition ("-": it has none);
#     HOURS: its README at 60 words a minute, its lesson file at five lines a minute, and the minutes of its exercises; BEYOND_HOURS: the same
#     of its folder beyond/. Where there is a program.cu, it is the target <directory>_whole, which uses no library of the course;
#     BESIDE: the problem, as its records call it, whose best result stands there (without it: the one with the most versions),
#     or that of BESIDE_VERSION;
#     NO_COUNTERS: why a profiler has nothing to count in it, and what to look at instead: sentences, which ./course profile prints;
#     PROGRAM_LIBRARIES and TEST_LIBRARIES: what the program or the test needs and the lesson does not;
#     CLEAN_SIZES: problems on which an inspection must not find anything in any of the lesson's kernels; a debugger takes the first;
#     RANDOM: a test draws so many problems of each distribution of the program;
#     HOPPER: <topic>.cu and program.cu have sm_90a's own instructions
#     DEVICE_LAUNCHES: their kernels launch kernels, which needs relocatable device code and cudadevrt
#   course_program_day(TITLE "..." QUESTION "..." PART "..." [NEEDS ...] CHAPTERS_4E "..." CHAPTERS_5E "..." HOURS n PROGRAMS "name|argument|..." ...
#              [LIBRARIES ...] [TEST_LIBRARIES ...])
#     a day of whole programs, each one file <name>.cu with main(): <build>/bin/dayNN_<name>; `./course run` runs them in this order with
#     these arguments; programs_test.cpp runs them as a user does
#   course_register_day(DIRECTORY TITLE "..." QUESTION "..." PART "..." [NEEDS ...] [BEYOND_NEEDS ...] CHAPTERS_4E "..." CHAPTERS_5E "..."
#              HOURS n [BEYOND_HOURS n] [BESIDE "..." [BESIDE_VERSION "..."]] [SMALL_SIZE "..."] [NO_COUNTERS "..."] [PROGRAMS ...])
#     for ./course and the front page; course_day and course_program_day do it
#   course_find_opencv(MODULE...)                                   targets opencv_MODULE
# Tests come in two halves: those of the lessons and of common, once, with threads in ascending order; and the others, which have the
# label "thorough". A target for each builds the tests and what they run; `all` has the other programs, too.
include(${CMAKE_CURRENT_LIST_DIR}/ReadingOrder.cmake)
add_custom_target(course_tests)
add_custom_target(course_tests_thorough)
add_custom_target(course_inspected_programs)  # what the tests DAY.clean.SIZE start
add_custom_target(course_kernels)  # the libraries with kernels, which is all lessons; no program, nor what only programs need

# Of kernels on the CPU, for all targets of a directory. Compiling them with more takes longer than it saves.
set(COURSE_KERNEL_OPTIMISATION -O1)

# The programs of days once more, each beside the plain one: what runs on the host is shared, so that of a variant only kernels have to be
# compiled. Other builds (presets cpu-debug and inspect) compile everything anew.
#   <directory>_program_<variant>, <directory>_exercise_program_<variant>    debugged: kernels are not optimised; inspected: every access is seen
set(COURSE_VARIANTS "")
if(COURSE_BACKEND STREQUAL "cpu" AND NOT COURSE_INSPECT AND NOT COURSE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  list(APPEND COURSE_VARIANTS debugged)
  set(COURSE_OPTIONS_debugged -O0 -g)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND COURSE_VARIANTS inspected)
    set(COURSE_OPTIONS_inspected ${CUDA_ON_CPU_INSPECT_OPTIONS} -DCUDA_ON_CPU_INSPECT)
  endif()
endif()

if(COURSE_BACKEND STREQUAL "cpu")
  include(${PROJECT_SOURCE_DIR}/cuda_on_cpu/cmake/Translate.cmake)
endif()

# Gives `target` a backend: its .cu sources go to nvcc, or through cuda_on_cpu's translator to the host compiler.
function(course_cuda_target target)
  target_link_libraries(${target} PUBLIC course::options)
  if(COURSE_BACKEND STREQUAL "gpu")
    target_link_libraries(${target} PUBLIC CUDA::cudart)
    return()
  endif()
  target_link_libraries(${target} PUBLIC cuda_on_cpu)
  if(COURSE_INSPECT)
    target_link_libraries(${target} PUBLIC cuda_on_cpu_inspector)
  endif()
  # Of a source for all targets that compile it; those of a variant have a property.
  set(variant $<TARGET_PROPERTY:COURSE_VARIANT>)
  set(options $<$<AND:$<CONFIG:Release>,$<STREQUAL:${variant},>>:${COURSE_KERNEL_OPTIMISATION}>)
  if(COURSE_INSPECT)
    set(options ${CUDA_ON_CPU_INSPECT_OPTIONS})
  endif()
  foreach(name IN LISTS COURSE_VARIANTS)
    list(APPEND options "$<$<STREQUAL:${variant},${name}>:${COURSE_OPTIONS_${name}}>")
  endforeach()
  cuda_on_cpu_translate(${target} ${options})
endfunction()

# Of what a host file takes to compile, half is the headers that most of them read: compiled once, for all libraries.
function(course_precompile_host_headers name)
  if(NOT TARGET course_host_headers)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/course_host_headers.cpp CONTENT "int course_host_headers;\n")
    add_library(course_host_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/course_host_headers.cpp)
    target_link_libraries(course_host_headers PRIVATE OpenMP::OpenMP_CXX fmt::fmt)
    course_cuda_target(course_host_headers)
    target_precompile_headers(course_host_headers PRIVATE <algorithm> <cmath> <cstdint> <cuda_runtime.h> <functional> <limits> <numeric>
      <stdexcept> <string> <vector>)
  endif()
  target_link_libraries(${name} PRIVATE fmt::fmt)  # whose macros the headers know
  target_precompile_headers(${name} REUSE_FROM course_host_headers)
  get_target_property(sources ${name} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  if(sources)  # the translator has its own
    set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

function(course_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK" "" "SOURCES;LIBRARIES")
  add_library(course_${name} STATIC ${arg_SOURCES})
  add_library(course::${name} ALIAS course_${name})
  target_include_directories(course_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  # OpenMP, even where no file uses it: kernels that are compiled with the same options share precompiled headers.
  target_link_libraries(course_${name} PUBLIC ${arg_LIBRARIES} PRIVATE OpenMP::OpenMP_CXX)
  course_cuda_target(course_${name})
  if(arg_QUICK)
    target_link_libraries(course_${name} PRIVATE course_quick_options)
  elseif(arg_SOURCES MATCHES "\\.cpp(;|$)")
    course_precompile_host_headers(course_${name})
  endif()
  if(arg_SOURCES MATCHES "\\.cu(;|$)" AND NOT name MATCHES "_peer$")
    add_dependencies(course_kernels course_${name})
  endif()
endfunction()

# What a variant of `target` is compiled with, beside the options of its kernels.
function(course_as_in target variant of)
  get_target_property(architectures ${of} CUDA_ARCHITECTURES)
  set_target_properties(${target} PROPERTIES COURSE_VARIANT ${variant} CUDA_ARCHITECTURES "${architectures}")
  foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
    get_target_property(value ${of} ${property})
    if(value)
      set_property(TARGET ${target} PROPERTY ${property} "${value}")
    endif()
  endforeach()
endfunction()

# Sets `result` to `libraries`, with the variant of each library of the course, which is made when it is first asked for.
function(course_variants_of result variant)
  set(variants "")
  foreach(library IN LISTS ARGN)
    if(NOT TARGET ${library})
      list(APPEND variants ${library})
      continue()
    endif()
    get_target_property(aliased ${library} ALIASED_TARGET)
    if(aliased)
      set(library ${aliased})
    endif()
    get_target_property(type ${library} TYPE)
    if(library MATCHES "^course_" AND type STREQUAL "STATIC_LIBRARY")
      course_library_variant(${library} ${variant})
      string(APPEND library _${variant})
    endif()
    list(APPEND variants ${library})
  endforeach()
  set(${result} ${variants} PARENT_SCOPE)
endfunction()

# The whole library: its kernels compiled once more, and the objects of the plain one's host code.
function(course_library_variant library variant)
  set(name ${library}_${variant})
  if(TARGET ${name})
    return()
  endif()
  get_target_property(sources ${library} SOURCES)
  get_target_property(directory ${library} SOURCE_DIR)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  list(TRANSFORM sources PREPEND ${directory}/)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${sources} "$<FILTER:$<TARGET_OBJECTS:${library}>,EXCLUDE,[.]cu[.]o$>")
  get_target_property(more ${library} COURSE_OBJECTS_${variant})
  if(more)
    target_sources(${name} PRIVATE ${more})
  endif()
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  course_as_in(${name} ${variant} ${library})
  target_include_directories(${name} INTERFACE $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
  get_target_property(libraries ${library} LINK_LIBRARIES)
  course_variants_of(libraries ${variant} ${libraries})
  target_link_libraries(${name} PUBLIC ${libraries})
  if(variant STREQUAL "inspected")
    target_link_libraries(${name} PUBLIC cuda_on_cpu_inspector)
  endif()
  course_cuda_target(${name})
endfunction()

# When all targets are known: days that come later may link the same library.
function(course_make_variants)
  get_property(directories GLOBAL PROPERTY COURSE_DIRECTORIES_WITH_PROGRAM)
  foreach(variant IN LISTS COURSE_VARIANTS)
    foreach(directory IN LISTS directories)
      get_target_property(linked ${directory}_program LINK_LIBRARIES)
      course_variants_of(variants ${variant} ${linked})
      add_executable(${directory}_program_${variant} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${directory}_program>)
      target_link_libraries(${directory}_program_${variant} PRIVATE ${variants})

      get_property(libraries GLOBAL PROPERTY COURSE_EXERCISE_LIBRARIES_${directory})
      set(objects "")
      foreach(library IN LISTS libraries)
        set(name ${library}_exercise_${variant})
        get_target_property(sources ${library}_exercise SOURCES)
        add_library(${name} OBJECT EXCLUDE_FROM_ALL ${sources})
        add_dependencies(${name} ${directory}_exercise_sources)
        course_as_in(${name} ${variant} ${library}_exercise)
        set_target_properties(${name} PROPERTIES COURSE_EXERCISE TRUE)
        target_link_libraries(${name} PRIVATE ${library})
        course_cuda_target(${name})
        list(APPEND objects $<TARGET_OBJECTS:${name}>)
      endforeach()
      if(objects)
        set(name ${directory}_exercise_program_${variant})
        add_executable(${name} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${directory}_program> ${objects})
        # A debugger stops in the learner's kernels only.
        if(variant STREQUAL "debugged")
          set(variants ${linked})
        endif()
        target_link_libraries(${name} PRIVATE ${variants})
      endif()
    endforeach()
  endforeach()
endfunction()

function(course_hopper_library name)
  course_library(${name} ${ARGN})
  set_target_properties(course_${name} PROPERTIES CUDA_ARCHITECTURES 90a)
endfunction()

function(course_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ON_DEMAND" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  course_cuda_target(${name})
  if(arg_ON_DEMAND)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endfunction()

# Host code whose speed does not matter, without what a debugger needs (preset cpu-debug has it). Linked last: of these options the
# last one counts.
add_library(course_quick_options INTERFACE)
target_compile_options(course_quick_options INTERFACE $<$<CONFIG:Release>:$<IF:$<STREQUAL:${COURSE_BACKEND},gpu>,-O2,-O0>> $<$<CONFIG:Release>:-g0>)

# course_compile_quickly(TARGET OWNER [LIBRARIES ...] [HEADERS ...])   tests and programs in plain C++ compile in half the time: not optimised, as
# what takes time when they run is in libraries, and with headers that all of them read compiled once, for the target OWNER. For a GPU they are
# optimised: there they make and compare a thousand times as much data.
function(course_compile_quickly name owner)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LIBRARIES;HEADERS")
  if(NOT TARGET ${owner})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${owner}.cpp CONTENT "int main() {}\n")
    add_executable(${owner} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${owner}.cpp)
    set_target_properties(${owner} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    target_link_libraries(${owner} PRIVATE ${arg_LIBRARIES})
    course_cuda_target(${owner})
    target_precompile_headers(${owner} PRIVATE <algorithm> <cuda_runtime.h> <fmt/format.h> <string> <vector> ${arg_HEADERS})
  endif()
  foreach(target ${owner} ${name})
    target_link_libraries(${target} PRIVATE fmt::fmt OpenMP::OpenMP_CXX course_quick_options)  # whose macros the headers know
  endforeach()
  target_precompile_headers(${name} REUSE_FROM ${owner})
endfunction()

function(course_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "BOTH_ORDERS;TOGETHER;THOROUGH" "LABEL;SHARDS" "SOURCES;LIBRARIES")
  course_executable(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES} course_test_main)
  set_target_properties(${name} PROPERTIES COURSE_TEST_PROGRAM TRUE)
  if(NOT "${arg_SOURCES}" MATCHES "\\.cu(;|$)")
    course_compile_quickly(${name} course_test_headers LIBRARIES GTest::gtest
      HEADERS <gtest/gtest.h> ${PROJECT_SOURCE_DIR}/common/test/instantiations.hpp)
    if(arg_TOGETHER)
      set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
    endif()
  elseif(COURSE_BACKEND STREQUAL "cpu")
    target_compile_options(${name} PRIVATE -fPIC)  # not -fPIE: some objects become part of a shared library, too
  endif()
  if(arg_THOROUGH)
    list(APPEND arg_LABEL thorough)
    add_dependencies(course_tests_thorough ${name})
  else()
    course_add_to_tests(${name})
  endif()
  # Each test in a process of its own: a lesson that asks once how large the device is must not hear it from another test. On a GPU
  # a process would begin with half a second of CUDA's.
  set(alone "")
  if(COURSE_BACKEND STREQUAL "cpu")
    set(alone COURSE_TEST_ALONE=1)
  endif()
  course_add_shards(${name} ${name} "${arg_SHARDS}" "${arg_LABEL}" ${alone})
  # A kernel must not depend on which thread of a block runs first: once more, lanes and warps last to first. One OS thread
  # is enough: the first run had blocks on several at the same time.
  if(arg_BOTH_ORDERS AND COURSE_BACKEND STREQUAL "cpu")
    add_dependencies(course_tests_thorough ${name})
    course_add_shards(${name} ${name}.descending "${arg_SHARDS}" "${arg_LABEL};thorough" ${alone} CUDA_ON_CPU_ORDER=descending
      CUDA_ON_CPU_THREADS=1)
  endif()
endfunction()

# course_add_to_tests(TARGET...): they are built with the half that the tests of this directory are in.
function(course_add_to_tests)
  if("thorough" IN_LIST CMAKE_DIRECTORY_LABELS)
    add_dependencies(course_tests_thorough ${ARGN})
  else()
    add_dependencies(course_tests ${ARGN})
  endif()
endfunction()

function(course_test_again name variant)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FILTER" "ENVIRONMENT")
  if(NOT COURSE_BACKEND STREQUAL "cpu")
    return()
  endif()
  if(arg_FILTER)
    list(APPEND arg_ENVIRONMENT "GTEST_FILTER=${arg_FILTER}")
  endif()
  string(REGEX REPLACE "_test$" "" label ${name})
  add_dependencies(course_tests_thorough ${name})
  course_add_shards(${name} ${name}.${variant} 1 "${label};thorough" COURSE_TEST_ALONE=1 ${arg_ENVIRONMENT})
endfunction()

# The tests of a program, in parts. Each writes a report (common/test/main.cpp), from which ./course test counts single tests. A test
# that hangs is ended by the program; the time here is that of a part.
set(course_test_reports ${CMAKE_BINARY_DIR}/test_reports)
file(MAKE_DIRECTORY ${course_test_reports})
function(course_add_shards program name shards label)
  if(NOT shards)
    set(shards 2)
  endif()
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    set(part ${name}.${shard}of${shards})
    add_test(NAME ${part} COMMAND ${program})
    set_tests_properties(${part} PROPERTIES TIMEOUT 3600 LABELS "${label}" COST ${shards} ENVIRONMENT
      "COURSE_TEST_REPORT=${course_test_reports}/${part}.jsonl;GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index};${ARGN}")
  endforeach()
endfunction()

# As add_test, for what is not a program's tests in parts: it reports, too, a GoogleTest program of course_test single tests, any other
# command as one test. FAIL_ON: a regular expression for what such a command must not print.
function(course_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;FAIL_ON;WORKING_DIRECTORY" "COMMAND")
  set(report ${course_test_reports}/${arg_NAME}.jsonl)
  list(POP_FRONT arg_COMMAND program)
  set(is_test_program FALSE)
  if(TARGET ${program})
    get_target_property(is_test_program ${program} COURSE_TEST_PROGRAM)
    set(program $<TARGET_FILE:${program}>)
  endif()
  if(is_test_program)
    set(launcher ${CMAKE_COMMAND} -E env COURSE_TEST_REPORT=${report})
  else()
    set(launcher ${PROJECT_SOURCE_DIR}/common/test/report_command.sh ${report})
    if(arg_FAIL_ON)
      list(APPEND launcher --fail-on ${arg_FAIL_ON})
    endif()
  endif()
  set(place "")
  if(arg_WORKING_DIRECTORY)
    set(place WORKING_DIRECTORY ${arg_WORKING_DIRECTORY})
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${launcher} ${program} ${arg_COMMAND} ${place})
  # CTest gives the labels of a directory to the tests that run there.
  if(arg_WORKING_DIRECTORY)
    set_tests_properties(${arg_NAME} PROPERTIES LABELS "${CMAKE_DIRECTORY_LABELS}")
  endif()
endfunction()

function(course_register_day directory)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TITLE;QUESTION;PART;CHAPTERS_4E;CHAPTERS_5E;HOURS;BEYOND_HOURS;BESIDE;BESIDE_VERSION;SMALL_SIZE;NO_COUNTERS"
    "NEEDS;BEYOND_NEEDS;PROGRAMS")
  foreach(key TITLE QUESTION PART CHAPTERS_4E CHAPTERS_5E HOURS)
    if("${arg_${key}}" STREQUAL "")
      message(FATAL_ERROR "${directory}: ${key} is missing; expected TITLE, QUESTION, PART, CHAPTERS_4E, CHAPTERS_5E and HOURS")
    endif()
  endforeach()
  if(directory MATCHES "^day([0-9]+)_(.+)$")
    math(EXPR number "${CMAKE_MATCH_1}")
    set(topic ${CMAKE_MATCH_2})
  else()
    set(number null)
    set(topic ${directory})
  endif()
  set(day "\"directory\": \"${directory}\", \"number\": ${number}, \"topic\": \"${topic}\", \"hours\": ${arg_HOURS}")
  if(arg_BEYOND_HOURS)
    string(APPEND day ", \"beyond_hours\": ${arg_BEYOND_HOURS}")
  endif()
  foreach(key TITLE QUESTION PART CHAPTERS_4E CHAPTERS_5E BESIDE BESIDE_VERSION SMALL_SIZE NO_COUNTERS)
    string(TOLOWER ${key} name)
    string(REPLACE "\"" "\\\"" value "${arg_${key}}")
    string(APPEND day ", \"${name}\": \"${value}\"")
  endforeach()
  foreach(key NEEDS BEYOND_NEEDS)
    string(TOLOWER ${key} name)
    list(JOIN arg_${key} "\", \"" value)
    if(value)
      set(value "\"${value}\"")
    endif()
    string(APPEND day ", \"${name}\": [${value}]")
  endforeach()
  set(programs "")
  foreach(program IN LISTS arg_PROGRAMS)
    string(REPLACE "|" "\", \"" program "${program}")
    list(APPEND programs "[\"${program}\"]")
  endforeach()
  list(JOIN programs ", " programs)
  string(REGEX MATCH "^day[0-9]+" short_name ${directory})
  if(NOT short_name)
    set(short_name ${directory})
  endif()
  course_place_day(${short_name} PART "${arg_PART}" NEEDS ${arg_NEEDS} BEYOND_NEEDS ${arg_BEYOND_NEEDS})
  set_property(GLOBAL PROPERTY COURSE_DAY_${short_name} "{${day}, \"programs\": [${programs}]}")
endfunction()

# The plain loops that a program times on the CPU (common/bench/plain_loop.hpp): compiled as a programmer would compile them.
function(course_plain_loop program source)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    target_sources(${program} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# Their results are verified, on a size that no block, vector or number of threads divides. Threads that spin would take each other's core.
function(course_test_plain_loop program size directory)
  set(name ${directory}.plain_loop.${size})
  course_add_test(NAME ${name} COMMAND ${program} --size ${size} --cpu-times)
  set_tests_properties(${name} PROPERTIES LABELS "inspection;thorough" ENVIRONMENT "OMP_NUM_THREADS=3;OMP_WAIT_POLICY=passive")
endfunction()

# Kernels of `target` launch kernels. With nvcc that needs relocatable device code, and cudadevrt in what the target becomes part of.
function(course_device_launches target)
  set_target_properties(${target} PROPERTIES COURSE_DEVICE_LAUNCHES TRUE)
  if(COURSE_BACKEND STREQUAL "gpu")
    set_target_properties(${target} PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_RESOLVE_DEVICE_SYMBOLS ON)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "OBJECT_LIBRARY")
      find_library(COURSE_CUDADEVRT cudadevrt HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
      mark_as_advanced(COURSE_CUDADEVRT)
      target_link_libraries(${target} PUBLIC ${COURSE_CUDADEVRT})
    endif()
  endif()
endfunction()

# <directory>.random: so many problems of each distribution of a day's program. Without a number there is no test.
function(course_test_random directory program count)
  if(NOT count)
    return()
  endif()
  add_dependencies(course_tests_thorough ${program})
  course_add_test(NAME ${directory}.random COMMAND ${program} --random ${count})
  set_tests_properties(${directory}.random PROPERTIES TIMEOUT 300 LABELS "${directory};thorough")
endfunction()

function(course_day)
  cmake_parse_arguments(PARSE_ARGV 0 arg "HOPPER;DEVICE_LAUNCHES" "TOPIC;TITLE;QUESTION;PART;CHAPTERS_4E;CHAPTERS_5E;HOURS;BEYOND_HOURS;BESIDE;BESIDE_VERSION;NO_COUNTERS;TEST_SHARDS;RANDOM"
    "NEEDS;BEYOND_NEEDS;SOURCES;LIBRARIES;PEERS;PROGRAM_LIBRARIES;TEST_LIBRARIES;CLEAN_SIZES")
  get_filename_component(directory ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(topic ${arg_TOPIC})
  set(reference ${topic}_reference.cpp)
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${reference})
    set(reference "")  # it is one of common's
  endif()
  course_library(${topic} SOURCES ${topic}.cu ${reference} ${arg_SOURCES}
    LIBRARIES course::common OpenMP::OpenMP_CXX ${arg_LIBRARIES})
  if(arg_HOPPER)
    set_target_properties(course_${topic} PROPERTIES CUDA_ARCHITECTURES 90a)
  endif()
  if(arg_DEVICE_LAUNCHES)
    course_device_launches(course_${topic})
  endif()
  set(program ${directory}_program)
  course_executable(${program} SOURCES ${topic}_bench.cpp LIBRARIES course::${topic} ${arg_PROGRAM_LIBRARIES})
  # By a link: Ninja takes the name of an executable's file for a target, which would hide the target <directory>.
  add_custom_command(TARGET ${program} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink ${program} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${directory} VERBATIM)
  course_compile_quickly(${program} course_program_headers)
  set_property(GLOBAL APPEND PROPERTY COURSE_DIRECTORIES_WITH_PROGRAM ${directory})
  if(NOT COURSE_SANITIZE)
    target_link_libraries(${program} PRIVATE course::host_memory)
  endif()
  course_plain_loop(${program} ${topic}_plain_loop.cpp)
  # The CUDA Toolkit's libraries to measure against (PEERS: the targets to link; CUB needs none) are where nvcc is.
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${topic}_peer.cu)
    course_library(${topic}_peer SOURCES ${topic}_peer.cu LIBRARIES course::${topic})
    target_link_libraries(${program} PRIVATE course::${topic}_peer)
    if(COURSE_BACKEND STREQUAL "gpu")
      target_compile_definitions(course_${topic}_peer PRIVATE COURSE_HAS_CUDA_LIBRARIES)
      target_link_libraries(course_${topic}_peer PUBLIC ${arg_PEERS})
    endif()
  endif()
  course_test(${directory}_test SOURCES ${topic}_test.cpp LIBRARIES course::${topic} ${arg_TEST_LIBRARIES}
    LABEL ${directory} SHARDS "${arg_TEST_SHARDS}" BOTH_ORDERS)
  add_custom_target(${directory})
  add_dependencies(${directory} ${program} ${directory}_test)
  # One whole program around a kernel of the lesson. No library of the course is linked, as nothing is when a learner compiles it.
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/program.cu)
    course_executable(${directory}_whole SOURCES program.cu ON_DEMAND)
    target_include_directories(${directory}_whole PRIVATE ${PROJECT_SOURCE_DIR})
    if(arg_HOPPER)
      set_target_properties(${directory}_whole PROPERTIES CUDA_ARCHITECTURES 90a)
    endif()
    if(arg_DEVICE_LAUNCHES)
      course_device_launches(${directory}_whole)
    endif()
    add_dependencies(${directory} ${directory}_whole)
    add_dependencies(course_tests_thorough ${directory}_whole)
    course_add_test(NAME ${directory}.program COMMAND ${directory}_whole)
    course_add_test(NAME ${directory}.program.size COMMAND ${PROJECT_SOURCE_DIR}/common/test/refuses.sh $<TARGET_FILE:${directory}_whole> 1e9)
    set_tests_properties(${directory}.program ${directory}.program.size PROPERTIES LABELS "${directory};thorough")
  endif()
  course_test_random(${directory} ${program} "${arg_RANDOM}")
  # What the lesson says of its accesses, where they can be counted.
  if(COURSE_INSPECT AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${topic}_inspection_test.cpp)
    course_test(${directory}_inspection_test SOURCES ${topic}_inspection_test.cpp LIBRARIES course::${topic}
      LABEL inspection)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/exercises.md)
    course_exercises(${directory})
  endif()
  if(COURSE_INSPECT)
    if(arg_CLEAN_SIZES)
      add_dependencies(course_inspected_programs ${program})
      add_dependencies(course_tests_thorough ${program})
    endif()
    foreach(size IN LISTS arg_CLEAN_SIZES)
      set(name ${directory}.clean.${size})
      course_add_test(NAME ${name} FAIL_ON "[1-9][0-9]* finding"
        COMMAND ${program} --size ${size} --inspect ${CMAKE_CURRENT_BINARY_DIR}/clean_${size}.json)
      set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "inspection;thorough")
      if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${topic}_plain_loop.cpp)
        course_test_plain_loop(${program} ${size} ${directory})
      endif()
    endforeach()
  endif()
  list(POP_FRONT arg_CLEAN_SIZES small_size)
  course_register_day(${directory} TITLE "${arg_TITLE}" QUESTION "${arg_QUESTION}" PART "${arg_PART}" NEEDS ${arg_NEEDS}
    BEYOND_NEEDS ${arg_BEYOND_NEEDS} CHAPTERS_4E "${arg_CHAPTERS_4E}" CHAPTERS_5E "${arg_CHAPTERS_5E}" HOURS "${arg_HOURS}"
    BEYOND_HOURS "${arg_BEYOND_HOURS}" BESIDE "${arg_BESIDE}"
    BESIDE_VERSION "${arg_BESIDE_VERSION}" SMALL_SIZE "${small_size}" NO_COUNTERS "${arg_NO_COUNTERS}")
endfunction()

function(course_program_day)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TITLE;QUESTION;PART;CHAPTERS_4E;CHAPTERS_5E;HOURS"
    "NEEDS;BEYOND_NEEDS;PROGRAMS;LIBRARIES;TEST_LIBRARIES")
  get_filename_component(directory ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  string(REGEX MATCH "^day[0-9]+" day ${directory})
  add_custom_target(${directory}_program ALL)
  course_test(${directory}_test SOURCES programs_test.cpp LIBRARIES course::common ${arg_TEST_LIBRARIES} LABEL ${directory} BOTH_ORDERS)
  add_custom_target(${directory})
  add_dependencies(${directory} ${directory}_program ${directory}_test)
  target_compile_definitions(${directory}_test PRIVATE COURSE_PROGRAM_PREFIX="${day}_" COURSE_PROGRAM_SUFFIX="")
  foreach(program IN LISTS arg_PROGRAMS)
    string(REGEX MATCH "^[a-z0-9_]+" name "${program}")
    course_executable(${day}_${name} SOURCES ${name}.cu LIBRARIES ${arg_LIBRARIES})
    add_dependencies(${directory}_program ${day}_${name})
    add_dependencies(${directory}_test ${day}_${name})
  endforeach()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/exercises.md)
    course_program_exercises(${directory} LIBRARIES ${arg_LIBRARIES} TEST_LIBRARIES ${arg_TEST_LIBRARIES})
  endif()
  course_register_day(${directory} TITLE "${arg_TITLE}" QUESTION "${arg_QUESTION}" PART "${arg_PART}" NEEDS ${arg_NEEDS}
    BEYOND_NEEDS ${arg_BEYOND_NEEDS} CHAPTERS_4E "${arg_CHAPTERS_4E}" CHAPTERS_5E "${arg_CHAPTERS_5E}" HOURS "${arg_HOURS}" PROGRAMS ${arg_PROGRAMS})
endfunction()

# Sets `result` to the files that the exercises of this directory are in.
function(course_exercise_files result)
  set(exercises ${CMAKE_CURRENT_SOURCE_DIR}/exercises.md)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${exercises})
  file(STRINGS ${exercises} named REGEX "^- file:")
  list(TRANSFORM named REPLACE "^- file:[ `]*([^` ]+)[ `]*$" "\\1")
  list(REMOVE_DUPLICATES named)
  set(${result} ${named} PARENT_SCOPE)
endfunction()

# <directory>_exercise of a day of whole programs: its tests, which run <day>_<name>_exercise in the place of each program that an exercise is in.
function(course_program_exercises directory)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;TEST_LIBRARIES")
  string(REGEX MATCH "^day[0-9]+" day ${directory})
  course_exercise_files(named)
  set(tree ${CMAKE_BINARY_DIR}/exercises/${directory})
  list(TRANSFORM named PREPEND ${tree}/ OUTPUT_VARIABLE made)
  add_custom_target(${directory}_exercise_sources
    COMMAND make_exercise_sources ${CMAKE_CURRENT_SOURCE_DIR} ${COURSE_MY}/${directory} ${tree} ${named}
    BYPRODUCTS ${made} COMMENT "Collecting the files of ${directory}'s exercises" VERBATIM)
  add_executable(${directory}_exercise EXCLUDE_FROM_ALL programs_test.cpp)
  target_link_libraries(${directory}_exercise PRIVATE course::common ${arg_TEST_LIBRARIES} course_test_main)
  target_compile_definitions(${directory}_exercise PRIVATE COURSE_PROGRAM_PREFIX="${day}_" COURSE_PROGRAM_SUFFIX="_exercise")
  course_cuda_target(${directory}_exercise)
  foreach(file IN LISTS named)
    string(REGEX REPLACE "\\.cu$" "" name ${file})
    set(program ${day}_${name}_exercise)
    add_executable(${program} EXCLUDE_FROM_ALL ${tree}/${file})
    add_dependencies(${program} ${directory}_exercise_sources)
    set_target_properties(${program} PROPERTIES COURSE_EXERCISE TRUE)
    target_link_libraries(${program} PRIVATE ${arg_LIBRARIES})
    if(COURSE_LATE_STORES)
      target_link_libraries(${program} PRIVATE cuda_on_cpu_late_stores)
      target_compile_options(${program} PRIVATE ${CUDA_ON_CPU_LATE_STORES_OPTIONS})
    endif()
    course_cuda_target(${program})
    add_dependencies(${directory}_exercise ${program})
    if("debugged" IN_LIST COURSE_VARIANTS)
      add_executable(${program}_debugged EXCLUDE_FROM_ALL ${tree}/${file})
      add_dependencies(${program}_debugged ${directory}_exercise_sources)
      set_target_properties(${program}_debugged PROPERTIES COURSE_EXERCISE TRUE COURSE_VARIANT debugged)
      target_link_libraries(${program}_debugged PRIVATE ${arg_LIBRARIES})
      course_cuda_target(${program}_debugged)
    endif()
  endforeach()
endfunction()

# <directory>_exercise: the day's tests with the learner's files, or where there are none the blank ones, in the place of the
# lesson's; <directory>_exercise_program and <directory>_inspection_exercise likewise. Built when they are asked for.
#
# What is compiled is a tree of copies in <build>/exercises/<directory>, which make_exercise_sources keeps up to date: the .cu files of
# the day's libraries, and all of the day's headers. Every exercise's build looks whether the learner's files say something new.
# Objects come before libraries, so that the linker takes the lesson's only for a .cu file whose copy is empty, as it is when nothing
# that it includes is the learner's.
set(COURSE_MY ${PROJECT_SOURCE_DIR}/my CACHE PATH "The learner's files: <directory>/<file>")
function(course_exercises directory)
  set(exercises ${CMAKE_CURRENT_SOURCE_DIR}/exercises.md)
  course_exercise_files(named)
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cuh *.hpp *.h)

  set(trees ${CMAKE_BINARY_DIR}/exercises)
  set(tree ${trees}/${directory})
  set(copied ${headers})
  set(objects "")
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(library IN LISTS targets)
    get_target_property(type ${library} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY" OR library MATCHES "_peer$")
      continue()
    endif()
    get_target_property(sources ${library} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cu$")
    if(NOT sources)
      continue()
    endif()
    list(APPEND copied ${sources})
    # A source finds the day's headers beside it, in the tree; then what the learner has added; then other files of the lesson (.inc).
    set(directories ${tree} ${trees})
    foreach(place ${COURSE_MY}/${directory} ${CMAKE_CURRENT_SOURCE_DIR})
      foreach(file IN LISTS sources)
        get_filename_component(folder ${place}/${file} DIRECTORY)
        list(APPEND directories ${folder})
      endforeach()
    endforeach()
    list(REMOVE_DUPLICATES directories)
    list(TRANSFORM sources PREPEND ${tree}/)
    set_property(GLOBAL APPEND PROPERTY COURSE_EXERCISE_LIBRARIES_${directory} ${library})
    add_library(${library}_exercise OBJECT EXCLUDE_FROM_ALL ${sources})
    add_dependencies(${library}_exercise ${directory}_exercise_sources)
    target_include_directories(${library}_exercise PRIVATE ${directories})
    get_target_property(architectures ${library} CUDA_ARCHITECTURES)
    set_target_properties(${library}_exercise PROPERTIES COURSE_EXERCISE TRUE CUDA_ARCHITECTURES "${architectures}")
    target_link_libraries(${library}_exercise PRIVATE ${library})
    get_target_property(launches ${library} COURSE_DEVICE_LAUNCHES)
    if(launches)
      course_device_launches(${library}_exercise)
      set(device_launches TRUE)
    endif()
    if(COURSE_LATE_STORES)
      target_link_libraries(${library}_exercise PRIVATE cuda_on_cpu_late_stores)
      target_compile_options(${library}_exercise PRIVATE ${CUDA_ON_CPU_LATE_STORES_OPTIONS})
    endif()
    course_cuda_target(${library}_exercise)
    list(APPEND objects $<TARGET_OBJECTS:${library}_exercise>)
  endforeach()

  set(not_built ${named})
  list(REMOVE_ITEM not_built ${copied})
  if(not_built)
    message(FATAL_ERROR "${exercises}: '- file: ${not_built}' is neither a source of the day's libraries nor a header of the day")
  endif()
  list(TRANSFORM copied PREPEND ${tree}/ OUTPUT_VARIABLE made)
  add_custom_target(${directory}_exercise_sources
    COMMAND make_exercise_sources ${CMAKE_CURRENT_SOURCE_DIR} ${COURSE_MY}/${directory} ${tree} ${copied}
    BYPRODUCTS ${made} COMMENT "Collecting the files of ${directory}'s exercises" VERBATIM)

  foreach(pair ${directory}_test:exercise ${directory}_program:exercise_program ${directory}_inspection_test:inspection_exercise)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 of_lesson)
    list(GET pair 1 suffix)
    if(TARGET ${of_lesson})
      add_executable(${directory}_${suffix} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${of_lesson}> ${objects})
      if(device_launches)
        course_device_launches(${directory}_${suffix})
      endif()
      # First the instantiations that a test leaves to course_test_main: an object of the lesson may hold a copy of one, and would be
      # taken for that alone, beside the learner's object, which defines the same kernels.
      if(NOT suffix STREQUAL "exercise_program")
        target_link_libraries(${directory}_${suffix} PRIVATE course_test_main)
      endif()
      target_link_libraries(${directory}_${suffix} PRIVATE $<TARGET_PROPERTY:${of_lesson},LINK_LIBRARIES>)
      if(COURSE_LATE_STORES)
        target_link_libraries(${directory}_${suffix} PRIVATE cuda_on_cpu_late_stores)
      endif()
    endif()
  endforeach()
endfunction()

# Found by name: the distribution's packages for single modules come without OpenCV's CMake files, which are in a package
# that brings 150 others.
function(course_find_opencv)
  find_path(OPENCV_INCLUDE_DIRECTORY opencv2/core.hpp PATH_SUFFIXES opencv4 REQUIRED)
  mark_as_advanced(OPENCV_INCLUDE_DIRECTORY)
  foreach(module IN LISTS ARGN)
    find_library(OPENCV_${module}_LIBRARY opencv_${module} REQUIRED)
    mark_as_advanced(OPENCV_${module}_LIBRARY)
    if(NOT TARGET opencv_${module})
      add_library(opencv_${module} SHARED IMPORTED GLOBAL)
      set_target_properties(opencv_${module} PROPERTIES
        IMPORTED_LOCATION ${OPENCV_${module}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${OPENCV_INCLUDE_DIRECTORY})
    endif()
  endforeach()
endfunction()

# Sets `result` to `text` with blanks behind it, `width` characters in all.
function(course_pad result text width)
  string(LENGTH "${text}" length)
  math(EXPR missing "${width} - ${length}")
  if(missing LESS 1)
    set(missing 1)
  endif()
  string(REPEAT " " ${missing} blanks)
  set(${result} "${text}${blanks}" PARENT_SCOPE)
endfunction()

# The days as a table of text, a part at a time, so that the first `./course list` need not compile a program.
function(course_write_list days)
  foreach(day IN LISTS days)
    get_property(json GLOBAL PROPERTY COURSE_DAY_${day})
    string(JSON part GET "${json}" part)
    string(MD5 key "${part}")
    list(APPEND width_${key} 10)
    foreach(chapters chapters_4e chapters_5e)
      string(JSON ${chapters} GET "${json}" ${chapters})
      string(LENGTH "${${chapters}}" length)
      math(EXPR length "${length} + 2")
      list(APPEND width_${key} ${length})
    endforeach()
    list(SORT width_${key} COMPARE NATURAL ORDER DESCENDING)
    list(GET width_${key} 0 width_${key})
  endforeach()
  set(text "")
  set(part "")
  foreach(day IN LISTS days)
    get_property(json GLOBAL PROPERTY COURSE_DAY_${day})
    set(last_part "${part}")
    foreach(key directory part hours chapters_4e chapters_5e title)
      string(JSON ${key} GET "${json}" ${key})
    endforeach()
    string(MD5 key "${part}")
    set(width ${width_${key}})  # of a column of chapters
    if(NOT part STREQUAL last_part)
      course_pad(heading "${part}" 28)
      course_pad(fourth "4th ed." ${width})
      course_pad(fifth "5th ed." ${width})
      string(APPEND text "\n${heading}hours     needs               ${fourth}${fifth}title\n")
    endif()
    get_property(needs GLOBAL PROPERTY COURSE_NEEDS_OF_${day})
    list(JOIN needs " " needs)
    string(REPLACE "day" "" needs "${needs}")
    string(JSON beyond_hours ERROR_VARIABLE has_no_beyond GET "${json}" beyond_hours)
    if(NOT has_no_beyond)
      string(APPEND hours " + ${beyond_hours}")
    endif()
    course_pad(directory "${directory}" 28)
    course_pad(hours "${hours}" 10)
    course_pad(chapters_4e "${chapters_4e}" ${width})
    course_pad(needs "${needs}" 20)
    course_pad(chapters_5e "${chapters_5e}" ${width})
    string(APPEND text "${directory}${hours}${needs}${chapters_4e}${chapters_5e}${title}\n")
  endforeach()
  string(SUBSTRING "${text}" 1 -1 text)
  file(WRITE ${CMAKE_BINARY_DIR}/days.txt
"${text}
In the order in which they are read. Hours include the exercises; those behind the + are of beyond/. Chapters are those of Programming Massively Parallel
Processors, in its 4th and its 5th edition.
Run one: ./course run day01
")
endfunction()

# days.json tells ./course what there is; days.txt is what `./course list` prints.
function(course_write_days)
  course_reading_order(order)
  course_write_list("${order}")
  set(days "")
  foreach(day IN LISTS order)
    get_property(json GLOBAL PROPERTY COURSE_DAY_${day})
    list(APPEND days "${json}")
  endforeach()
  list(JOIN days ",\n    " days)
  list(JOIN COURSE_VARIANTS "\", \"" variants)
  if(variants)
    set(variants "\"${variants}\"")
  endif()
  string(REPLACE "ON" "true" late_stores ${COURSE_LATE_STORES})
  string(REPLACE "OFF" "false" late_stores ${late_stores})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/days.json @ONLY CONTENT
"{
  \"backend\": \"${COURSE_BACKEND}\",
  \"build_type\": \"${CMAKE_BUILD_TYPE}\",
  \"late_stores\": ${late_stores},
  \"variants\": [${variants}],
  \"days\": [
    ${days}
  ]
}
")
endfunction()
