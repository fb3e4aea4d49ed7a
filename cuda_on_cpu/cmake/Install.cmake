# <prefix>/lib/cuda_on_cpu is laid out as a CUDA Toolkit and works from any place. It is not in bin/, so that it does not come before a
# real nvcc; bin/cuda-on-cpu-nvcc is.
set(home lib/cuda_on_cpu)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(TARGETS cuda_on_cpu_nvcc cuda_on_cpu_compile RUNTIME DESTINATION ${home}/bin)
install(DIRECTORY include/ DESTINATION ${home}/include)
install(DIRECTORY ${CMAKE_BINARY_DIR}/cuda/lib64/ DESTINATION ${home}/lib64 USE_SOURCE_PERMISSIONS)
install(DIRECTORY DESTINATION ${home}/nvvm/libdevice)
install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin\")
file(CREATE_LINK ../${home}/bin/nvcc \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/bin/cuda-on-cpu-nvcc\" SYMBOLIC)")
set(documentation share/doc/cuda-on-cpu)
install(FILES LICENSE CHANGELOG.md DESTINATION ${documentation})
install(FILES LICENSE DESTINATION ${documentation} RENAME copyright)  # Debian's name for it
install(PROGRAMS scripts/try_foreign.py DESTINATION ${documentation}/scripts)
install(CODE "set(source \"${CMAKE_CURRENT_SOURCE_DIR}\")
set(destination \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${documentation}\")")
install(SCRIPT cmake/install_pages.cmake)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cuda_on_cpuConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cuda_on_cpuConfigVersion.cmake cmake/cuda_on_cpuConfig.cmake DESTINATION lib/cmake/cuda_on_cpu)

# cpack -G DEB
set(CPACK_PACKAGE_NAME cuda-on-cpu)
set(CPACK_PACKAGE_CONTACT "The authors of CUDA, day by day <cuda-on-cpu@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "nvcc for machines without a GPU: CUDA C++ runs on the CPU")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++, binutils")
# What the libraries of the toolkit stand on: nvcc tells which one a program lacks.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas-dev, libfftw3-dev, libthrust-dev")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_GENERATOR DEB TGZ)
include(CPack)
