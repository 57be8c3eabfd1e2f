# Shared objects of the benchmark: timing and copies, and one for each installed C library that Tenon
# is compared with.

function(tenon_add_bench name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  target_compile_definitions(${name} PRIVATE _POSIX_C_SOURCE=200809L)
  target_link_libraries(${name} PRIVATE tenon_warnings)
endfunction()

tenon_add_bench(bench_native bench/native/clock.c bench/native/copy.c)
target_link_libraries(bench_native PRIVATE Threads::Threads)

# Names OpenBLAS explicitly, as another BLAS may be the default.
pkg_check_modules(openblas IMPORTED_TARGET openblas)
if(openblas_FOUND)
  tenon_add_bench(bench_openblas bench/native/openblas.c)
  target_link_libraries(bench_openblas PRIVATE PkgConfig::openblas)
endif()

# oneDNN's own CMake package requires OpenCL.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
find_library(DNNL_LIBRARY dnnl)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  tenon_add_bench(bench_onednn bench/native/onednn.c)
  target_include_directories(bench_onednn SYSTEM PRIVATE ${DNNL_INCLUDE_DIR})
  target_link_libraries(bench_onednn PRIVATE ${DNNL_LIBRARY})
endif()

# Times products by CLBlast, for comparison with the backend OPENCL; built on demand.
find_path(CLBLAST_INCLUDE_DIR clblast_c.h)
find_library(CLBLAST_LIBRARY clblast)
find_library(OPENCL_LIBRARY OpenCL)
if(CLBLAST_INCLUDE_DIR AND CLBLAST_LIBRARY AND OPENCL_LIBRARY)
  add_executable(clblast_bench EXCLUDE_FROM_ALL bench/native/clblast.c bench/native/clock.c)
  set_target_properties(clblast_bench PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  target_include_directories(clblast_bench SYSTEM PRIVATE ${CLBLAST_INCLUDE_DIR})
  target_compile_definitions(clblast_bench PRIVATE _POSIX_C_SOURCE=200809L)
  target_link_libraries(clblast_bench PRIVATE ${CLBLAST_LIBRARY} ${OPENCL_LIBRARY} tenon_warnings)
endif()

# Records times of kernels for the test of the cost model; built on demand.
add_executable(corpus_record EXCLUDE_FROM_ALL bench/corpus/record.c bench/corpus/corpus.c)
set_target_properties(corpus_record PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
target_include_directories(corpus_record PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(corpus_record PRIVATE tenon_internal tenon_warnings Threads::Threads m)
