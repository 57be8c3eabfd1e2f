# Compiler flags: language, warnings, sanitizers.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# For every target, users' programs included.
add_library(tenon_warnings INTERFACE)
target_compile_options(tenon_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wvla
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
  $<$<BOOL:${TENON_WERROR}>:-Werror>)

# For targets that include the library's internal headers. Contraction is off because the interpreter and
# constant folding must round as written on every target.
add_library(tenon_flags INTERFACE)
target_link_libraries(tenon_flags INTERFACE tenon_warnings)
target_compile_options(tenon_flags INTERFACE -ffp-contract=off)
target_compile_definitions(tenon_flags INTERFACE
  _GNU_SOURCE $<$<BOOL:${TENON_VERIFY}>:TENON_VERIFY=1>)

if(TENON_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TENON_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
  endif()
  if(NOT TENON_SANITIZE)
    set(TENON_SANITIZE address,undefined)
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(TENON_SANITIZE)
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()
