# Builds the shared and the static library from one set of objects.

set(sources)
set(layers ${TENON_LAYERS})
list(REMOVE_ITEM layers base)
foreach(layer IN LISTS layers)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS src/${layer}/*.c)
  list(FILTER found EXCLUDE REGEX "/device/llvm/")   # a module of its own
  list(APPEND sources ${found})
endforeach()

# The base layer is separate: the command links it in addition to the public functions.
file(GLOB_RECURSE found CONFIGURE_DEPENDS src/base/*.c)
add_library(tenon_base OBJECT ${found})
add_library(tenon_objects OBJECT ${sources} ${TENON_GENERATED})
foreach(part IN ITEMS tenon_base tenon_objects)
  set_target_properties(${part} PROPERTIES C_VISIBILITY_PRESET hidden)
  target_include_directories(${part} PUBLIC include src "${TENON_GENERATED_DIR}")
  target_link_libraries(${part} PRIVATE tenon_flags tenon_dependencies)
endforeach()
set(all_objects $<TARGET_OBJECTS:tenon_base> $<TARGET_OBJECTS:tenon_objects>)

# For tests of internals. Not installed.
add_library(tenon_internal STATIC EXCLUDE_FROM_ALL ${all_objects})
target_include_directories(tenon_internal PUBLIC include src "${TENON_GENERATED_DIR}")
target_link_libraries(tenon_internal PUBLIC tenon_flags tenon_dependencies)

add_library(tenon SHARED ${all_objects})
add_library(tenon::tenon ALIAS tenon)
set(symbols "${PROJECT_SOURCE_DIR}/cmake/tenon.map")
set_target_properties(tenon PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${symbols})
target_link_options(tenon PRIVATE -Wl,--version-script=${symbols})
if(NOT TENON_SANITIZE)   # the program provides a sanitizer's functions
  target_link_options(tenon PRIVATE -Wl,--no-undefined)
endif()
target_link_libraries(tenon PRIVATE tenon_dependencies)

# The static library is one object whose only global names are tn_*, so that it cannot clash with
# names of the program, such as those of another nanopb.
set(combined "${PROJECT_BINARY_DIR}/tenon${CMAKE_C_OUTPUT_EXTENSION}")
add_custom_command(
  OUTPUT ${combined}
  COMMAND ${CMAKE_LINKER} -r -o ${combined} ${all_objects} ${NANOPB_LIBRARY}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=tn_* ${combined}
  DEPENDS tenon_base tenon_objects ${all_objects}
  COMMENT "Combining the static library's objects"
  COMMAND_EXPAND_LISTS VERBATIM)
set_source_files_properties(${combined} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)

add_library(tenon_static STATIC ${combined})
add_library(tenon::static ALIAS tenon_static)
set_target_properties(tenon_static PROPERTIES
  OUTPUT_NAME tenon
  EXPORT_NAME static
  LINKER_LANGUAGE C)
target_link_libraries(tenon_static INTERFACE cpuinfo Threads::Threads ${CMAKE_DL_LIBS} m)

foreach(library IN ITEMS tenon tenon_static)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
