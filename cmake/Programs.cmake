# Builds the command `tenon` and the examples. Examples use the public headers and the shared library
# only; each is a file, examples/NAME.c, or a folder, examples/NAME/.

if(TENON_COMMAND)
  file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS src/cli/*.c)
  if(cli_sources)
    add_executable(tenon_command ${cli_sources})
    # Exports the public functions, which backends that it loads call.
    set_target_properties(tenon_command PROPERTIES
      OUTPUT_NAME tenon ENABLE_EXPORTS ON C_VISIBILITY_PRESET hidden)
    # Links a separate copy of the base layer, and only public functions of the library: the static
    # library has no other global names.
    target_sources(tenon_command PRIVATE $<TARGET_OBJECTS:tenon_base>)
    target_include_directories(tenon_command PRIVATE src)
    target_link_libraries(tenon_command PRIVATE tenon_flags tenon::static PkgConfig::jansson)
  endif()
endif()

function(tenon_add_example name)
  add_executable(example_${name} ${ARGN})
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
  target_link_libraries(example_${name} PRIVATE
    tenon::tenon tenon_warnings PkgConfig::jansson Threads::Threads m)
  target_link_options(example_${name} PRIVATE -Wl,--as-needed)
endfunction()

if(TENON_EXAMPLES)
  file(GLOB found CONFIGURE_DEPENDS examples/*.c)
  set(TENON_SINGLE_EXAMPLES)
  foreach(source IN LISTS found)
    get_filename_component(name ${source} NAME_WE)
    tenon_add_example(${name} ${source})
    list(APPEND TENON_SINGLE_EXAMPLES ${name})
  endforeach()

  file(GLOB found CONFIGURE_DEPENDS LIST_DIRECTORIES true examples/*)
  foreach(folder IN LISTS found)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
    if(sources)
      get_filename_component(name ${folder} NAME)
      tenon_add_example(${name} ${sources})
    endif()
  endforeach()
endif()
