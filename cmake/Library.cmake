# The library, shared and static, from one set of objects.

set(sources)
foreach(layer IN LISTS TENON_LAYERS)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS src/${layer}/*.c)
  list(APPEND sources ${found})
endforeach()

add_library(tenon_objects OBJECT ${sources} ${TENON_GENERATED})
set_target_properties(tenon_objects PROPERTIES C_VISIBILITY_PRESET hidden)
target_include_directories(tenon_objects PUBLIC include src "${TENON_GENERATED_DIR}")
target_link_libraries(tenon_objects PRIVATE tenon_flags tenon_dependencies)

# For the command and the tests, which see inside. Not installed.
add_library(tenon_internal STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:tenon_objects>)
target_include_directories(tenon_internal PUBLIC include src "${TENON_GENERATED_DIR}")
target_link_libraries(tenon_internal PUBLIC tenon_flags tenon_dependencies)

add_library(tenon SHARED $<TARGET_OBJECTS:tenon_objects>)
add_library(tenon::tenon ALIAS tenon)
set(symbols "${PROJECT_SOURCE_DIR}/cmake/tenon.map")
set_target_properties(tenon PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${symbols})
target_link_options(tenon PRIVATE -Wl,--version-script=${symbols})
if(NOT TENON_SANITIZE)   # a sanitizer's functions come with the program
  target_link_options(tenon PRIVATE -Wl,--no-undefined)
endif()
target_link_libraries(tenon PRIVATE tenon_dependencies)

# The static library is one object in which only tn_* is left global, so that it clashes with
# nothing in the program it goes into, another nanopb included.
set(combined "${PROJECT_BINARY_DIR}/tenon${CMAKE_C_OUTPUT_EXTENSION}")
add_custom_command(
  OUTPUT ${combined}
  COMMAND ${CMAKE_LINKER} -r -o ${combined} $<TARGET_OBJECTS:tenon_objects> ${NANOPB_LIBRARY}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=tn_* ${combined}
  DEPENDS tenon_objects $<TARGET_OBJECTS:tenon_objects>
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
