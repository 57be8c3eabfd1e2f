# Generated sources, in generated/ with the folders of src/: rules by rulec, protobuf by
# nanopb. TENON_GENERATED lists them.

set(TENON_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(TENON_GENERATED)

file(GLOB rulec_sources CONFIGURE_DEPENDS tools/rulec/*.c)
file(GLOB rules CONFIGURE_DEPENDS src/rules/*.rules)
if(rulec_sources AND rules)
  add_executable(rulec ${rulec_sources})
  target_include_directories(rulec PRIVATE include src)
  target_link_libraries(rulec PRIVATE tenon_flags)

  set(compiled_rules "${TENON_GENERATED_DIR}/rules/compiled_rules.c")
  add_custom_command(
    OUTPUT ${compiled_rules}
    COMMAND ${CMAKE_COMMAND} -E make_directory "${TENON_GENERATED_DIR}/rules"
    COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0
            $<TARGET_FILE:rulec> ${compiled_rules} ${rules}
    DEPENDS rulec ${rules}
    COMMENT "Compiling the rules"
    VERBATIM)
  list(APPEND TENON_GENERATED ${compiled_rules})
endif()

# Cached kernels and plans outlive a build: their keys contain a hash of the sources that affect them.
set(decide)
foreach(folder IN ITEMS include src/base src/ir src/rules src/laws src/target src/schedule src/codegen
                        src/render src/device src/compile src/runtime tools/rulec)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*.h ${folder}/*.def
    ${folder}/*.rules)
  list(APPEND decide ${found})
endforeach()
set(build_id "${TENON_GENERATED_DIR}/compile/build_id.c")
add_custom_command(
  OUTPUT ${build_id}
  COMMAND ${CMAKE_COMMAND} "-DMADE=${build_id}" "-DVERSION=${PROJECT_VERSION}"
          "-DFILES=${decide}" -P "${PROJECT_SOURCE_DIR}/cmake/BuildId.cmake"
  DEPENDS ${decide} cmake/BuildId.cmake
  COMMENT "Hashing the sources of kernels and plans"
  VERBATIM)
list(APPEND TENON_GENERATED ${build_id})

file(GLOB_RECURSE protos CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src" src/formats/*.proto)
foreach(proto IN LISTS protos)
  string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
  set(options "${PROJECT_SOURCE_DIR}/src/${stem}.options")
  if(NOT EXISTS ${options})
    set(options)
  endif()
  set(made "${TENON_GENERATED_DIR}/${stem}.pb.c" "${TENON_GENERATED_DIR}/${stem}.pb.h")
  add_custom_command(
    OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory "${TENON_GENERATED_DIR}"
    COMMAND ${NANOPB_GENERATOR} --quiet --error-on-unmatched -I "${PROJECT_SOURCE_DIR}/src"
            -D "${TENON_GENERATED_DIR}" ${proto}
    DEPENDS "${PROJECT_SOURCE_DIR}/src/${proto}" ${options}
    COMMENT "Generating ${stem}.pb.c"
    VERBATIM)
  list(APPEND TENON_GENERATED ${made})
endforeach()
