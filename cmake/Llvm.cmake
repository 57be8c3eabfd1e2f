# Builds the LLVM module, which compiles kernels in the process, where LLVM 19 and a C++ compiler are
# there. It uses LLVM's C++ interface, which changes between versions. The library finds it at run time, and links nothing of LLVM.

option(TENON_LLVM "Build the LLVM module if LLVM is there" ON)
set(TENON_LLVM_FILE "tenon-llvm${CMAKE_SHARED_MODULE_SUFFIX}")

function(tenon_find_llvm)
  include(CheckLanguage)
  find_program(LLVM_CONFIG NAMES llvm-config-19 llvm-config)
  if(NOT LLVM_CONFIG)
    message(STATUS "LLVM module: left out, as there is no llvm-config (apt install llvm-19-dev)")
    return()
  endif()
  execute_process(COMMAND ${LLVM_CONFIG} --version OUTPUT_VARIABLE version
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT version MATCHES "^19\\.")
    message(STATUS "LLVM module: left out, as LLVM is ${version}, and not 19")
    return()
  endif()
  check_language(CXX)
  if(NOT CMAKE_CXX_COMPILER)
    message(STATUS "LLVM module: left out, as there is no C++ compiler")
    return()
  endif()
  foreach(what IN ITEMS includedir libdir)
    execute_process(COMMAND ${LLVM_CONFIG} --${what} OUTPUT_VARIABLE ${what}
      OUTPUT_STRIP_TRAILING_WHITESPACE)
  endforeach()
  find_library(LLVM_LIBRARY NAMES LLVM LLVM-19 PATHS ${libdir} NO_DEFAULT_PATH)
  if(NOT LLVM_LIBRARY)
    message(STATUS "LLVM module: left out, as ${libdir} has no shared libLLVM")
    return()
  endif()
  set(llvm_includes ${includedir} PARENT_SCOPE)
  message(STATUS "LLVM module: with LLVM ${version} (${LLVM_LIBRARY})")
endfunction()

if(TENON_LLVM)
  tenon_find_llvm()
endif()

if(TENON_LLVM AND llvm_includes)
  enable_language(CXX)
  add_library(tenon_llvm MODULE src/device/llvm/llvm_module.c src/device/llvm/llvm_exceptions.cpp
    src/device/llvm/emit_object.cpp)
  set_target_properties(tenon_llvm PROPERTIES PREFIX "" OUTPUT_NAME tenon-llvm
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
  target_include_directories(tenon_llvm PRIVATE src)
  target_include_directories(tenon_llvm SYSTEM PRIVATE ${llvm_includes})
  # Exceptions pass through the C code between LLVM and the guard.
  target_compile_options(tenon_llvm PRIVATE -fexceptions)
  target_link_libraries(tenon_llvm PRIVATE tenon_warnings ${LLVM_LIBRARY} Threads::Threads)
endif()

# Where the library looks for the module, besides its own folder.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_FULL_BINDIR}"
  OUTPUT_VARIABLE beside)
set(llvm_definitions TENON_LLVM_FILE="${TENON_LLVM_FILE}" TENON_LLVM_BESIDE="${beside}"
  TENON_LLVM_FOLDER="${CMAKE_INSTALL_FULL_LIBDIR}")
if(TARGET tenon_llvm)
  list(APPEND llvm_definitions TENON_LLVM_LIBRARY="${LLVM_LIBRARY}")
endif()
set_source_files_properties(src/device/cpu/llvm_loader.c src/device/cpu/llvm_pair.c
  PROPERTIES COMPILE_DEFINITIONS "${llvm_definitions}")
