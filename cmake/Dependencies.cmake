# Dependencies of the library; scripts/setup.sh installs them.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)   # its header only
pkg_check_modules(cpuinfo REQUIRED IMPORTED_TARGET libcpuinfo)

# nanopb has no pkg-config file. It is linked into both the static and the shared library.
find_path(NANOPB_INCLUDE_DIR pb_decode.h REQUIRED)
find_library(NANOPB_LIBRARY protobuf-nanopb REQUIRED)
find_program(NANOPB_GENERATOR NAMES nanopb_generator.py nanopb_generator REQUIRED)

add_library(tenon_dependencies INTERFACE)
target_include_directories(tenon_dependencies SYSTEM INTERFACE
  ${NANOPB_INCLUDE_DIR} ${xxhash_INCLUDE_DIRS})
target_link_libraries(tenon_dependencies INTERFACE
  ${NANOPB_LIBRARY} PkgConfig::cpuinfo Threads::Threads ${CMAKE_DL_LIBS} m)

if(TENON_COMMAND OR TENON_EXAMPLES)
  pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)
endif()
