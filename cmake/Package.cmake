# Installs headers, libraries, the command, the licence, and files for CMake and pkg-config.

include(CMakePackageConfigHelpers)
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tenon")

install(DIRECTORY include/tenon DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h")
install(TARGETS tenon tenon_static EXPORT tenon)
if(TARGET tenon_command)
  install(TARGETS tenon_command)
endif()

if(TARGET tenon_llvm)
  install(TARGETS tenon_llvm DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

install(EXPORT tenon DESTINATION "${config_dir}" NAMESPACE tenon:: FILE tenon-targets.cmake)
configure_package_config_file(cmake/tenon-config.cmake.in
  "${PROJECT_BINARY_DIR}/tenon-config.cmake" INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tenon-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tenon-config.cmake"
              "${PROJECT_BINARY_DIR}/tenon-config-version.cmake"
  DESTINATION "${config_dir}")

# Paths are relative to the .pc file, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
  OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
  OUTPUT_VARIABLE pc_includedir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE pc_prefix)
foreach(name IN ITEMS tenon tenon-static)
  configure_file(cmake/${name}.pc.in "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

# Installs the pages that README.md, and these pages, link to at the same relative paths.
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES docs/backends.md docs/design.md docs/glossary.md docs/library.md docs/onnx.md
  docs/onnx-operators.md docs/performance.md docs/pipeline.md
  DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}")
