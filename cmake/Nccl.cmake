# course_nccl: what days that call NCCL link. On the CPU it is a part of the stand-in; with a GPU it may be installed. Where it is,
# COURSE_HAS_NCCL is defined.
include_guard(GLOBAL)

add_library(course_nccl INTERFACE)
if(COURSE_BACKEND STREQUAL "cpu")
  target_link_libraries(course_nccl INTERFACE cuda_on_cpu_nccl)
  target_compile_definitions(course_nccl INTERFACE COURSE_HAS_NCCL)
else()
  # By the system's paths, or beside the CUDA Toolkit's own libraries.
  find_path(COURSE_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # PyTorch's wheels have no libnccl.so: -D COURSE_NCCL_INCLUDE=... -D COURSE_NCCL=.../libnccl.so.2
  find_library(COURSE_NCCL NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  mark_as_advanced(COURSE_NCCL_INCLUDE COURSE_NCCL)
  if(COURSE_NCCL_INCLUDE AND COURSE_NCCL)
    target_include_directories(course_nccl INTERFACE ${COURSE_NCCL_INCLUDE})
    target_link_libraries(course_nccl INTERFACE ${COURSE_NCCL})
    target_compile_definitions(course_nccl INTERFACE COURSE_HAS_NCCL)
  else()
    message(STATUS "days 50 and 51: NCCL is left out: nccl.h or libnccl was not found")
  endif()
endif()
