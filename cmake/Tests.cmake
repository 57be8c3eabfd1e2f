# Tests, found by their place in tests/:
#   tests/unit/test_SUBJECT.c      one cmocka program each, with access to the library's internals
#   tests/api/SUBJECT.c, .cpp      one program each, against the public headers and shared library
#   tests/KIND/test_SUBJECT.sh, .py  scripts; they get the build folder as their argument
#   tests/support/                 helpers of several programs: tenon_test_support
#   tests/fuzz/fuzz_SUBJECT.c      libFuzzer programs, with TENON_FUZZ; seeds.c writes their seeds
#   examples/NAME.c                run without arguments
# A test runs in the source folder, and skips by exit code 77. The disk cache of kernels is off,
# except in tests of the cache, which use folders of their own. CONTRIBUTING.md lists the tests that
# each preset runs.

include(CTest)
enable_language(CXX)
pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka)

# The virtual environment of `scripts/setup.sh --tests` if it exists, else the first python3. Looked
# up again in each build; TENON_PYTHON names another interpreter.
find_program(found_python python3 NO_CACHE REQUIRED)
file(GLOB venv CONFIGURE_DEPENDS build/venv/requirements.txt)
if(NOT TENON_PYTHON OR TENON_PYTHON STREQUAL found_python)
  unset(TENON_PYTHON CACHE)
  set(TENON_PYTHON "${found_python}")
  if(venv)
    set(TENON_PYTHON "${PROJECT_SOURCE_DIR}/build/venv/bin/python3")
  endif()
endif()
message(STATUS "Python of the tests: ${TENON_PYTHON}")

set(llvm_module off)
if(TARGET tenon_llvm)
  set(llvm_module "$<TARGET_FILE:tenon_llvm>")
endif()
set(test_environment
  "TENON_CACHE=off"
  "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache"   # for programs that ignore TENON_CACHE
  "TENON_SANITIZE=${TENON_SANITIZE}"
  "TENON_LLVM=${llvm_module}"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=second_deadlock_stack=1")

# Tests whose results do not depend on the kind of build run in unoptimised ones only: the library's
# internals, the rules, generated kernels by operator, and the source text. An optimised build
# runs tests of the public interface, random graphs and networks; TENON_ALL_TESTS adds the others.
set(one_build_only
  "^(unit|rules|ops|ops_ref|cuda|source)\\.|^onnx\\.(ops|conformance)|^cli\\.cli$|^bench\\.measure$")
string(APPEND one_build_only "|^pairs\\.(cuda|opencl)$|^random\\.(graphs|programs)_cuda$")
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT TENON_ALL_TESTS)
  set(left_out "${one_build_only}")
elseif(TENON_SANITIZE)
  set(left_out "^unit\\.cost_corpus$")   # schedules 1,700 kernels to judge times alone
else()
  set(left_out "^$")
endif()

# CTest starts the tests with the highest cost first, so that no long test runs alone at the end.
# Costs are seconds in an unoptimised build on one core.
set(costs pairs.opencl=120 random.graphs=60 cli.cli=40 exports.exports=35 networks.opencl=35 onnx.ops=35
  unit.render=30 ops.order=25 onnx.ops_language=25 pairs.cuda=20 group.nccl=17 group.group=17
  rules.proofs=25 random.programs=20 unit.out_of_memory=20 unit.cost_corpus=12
  rules.rules=15 networks.networks=15 unit.codegen=8
  unit.schedule=8 ops.reduce=8 ir.text=7 onnx.sizes=7 cli.sets=6 bench.run=6 unit.plan=5
  onnx.conformance=12)

function(tenon_set_cost name)
  string(REGEX REPLACE "_[0-9]+$" "" unsplit ${name})   # shards: NAME_1, NAME_2, …
  foreach(cost IN LISTS costs)
    string(REPLACE "=" ";" cost ${cost})
    list(GET cost 0 test)
    list(GET cost 1 seconds)
    if(unsplit STREQUAL test)
      set_tests_properties(${name} PROPERTIES COST ${seconds})
    endif()
  endforeach()
endfunction()

function(tenon_add_test name label)
  if(name MATCHES "${left_out}")
    return()
  endif()
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES
    LABELS ${label}
    TIMEOUT ${TENON_TEST_SECONDS}
    SKIP_RETURN_CODE 77
    ENVIRONMENT "${test_environment}")
  tenon_set_cost(${name})
endfunction()

function(tenon_add_test_program label source)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^test_" "" name ${name})
  set(target ${label}_${name})
  if("${label}.${name}" MATCHES "${left_out}")
    return()
  endif()
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_compile_definitions(${target} PRIVATE TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE
    ${ARGN} tenon_warnings PkgConfig::cmocka Threads::Threads m)
  tenon_add_test(${label}.${name} ${label} ${target})
endfunction()

# Helpers of several test programs, included as "support/NAME.h".
file(GLOB found CONFIGURE_DEPENDS tests/support/*.c)
add_library(tenon_test_support STATIC EXCLUDE_FROM_ALL ${found})
target_include_directories(tenon_test_support PUBLIC tests)
target_link_libraries(tenon_test_support PUBLIC tenon_internal PRIVATE tenon_warnings)

# Stand-ins for CUDA's driver, NVRTC, cuBLAS and NCCL, whose kernels are compiled for the processor, in a folder of
# their own, which tests put in LD_LIBRARY_PATH. Their fibres are not made for sanitizers.
if(NOT TENON_SANITIZE)
  set(cuda_stand_ins "${PROJECT_BINARY_DIR}/tests/cuda")
  set(cuda_environment "LD_LIBRARY_PATH=${cuda_stand_ins}" "TENON_NVRTC=" "TENON_CUBLAS=" "TENON_NCCL=")
  foreach(name driver nvrtc cublas nccl)
    add_library(stand_in_${name} SHARED tests/cuda/${name}.c)
    set_target_properties(stand_in_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${cuda_stand_ins}")
    target_compile_definitions(stand_in_${name} PRIVATE _GNU_SOURCE
      EMULATION_HEADER="${PROJECT_SOURCE_DIR}/tests/cuda/emulation.h")
    target_include_directories(stand_in_${name} PRIVATE src include)
    target_link_libraries(stand_in_${name} PRIVATE
      tenon_warnings Threads::Threads ${CMAKE_DL_LIBS})
  endforeach()
  set_target_properties(stand_in_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1)
  set_target_properties(stand_in_nvrtc PROPERTIES OUTPUT_NAME nvrtc SOVERSION 12)
  set_target_properties(stand_in_cublas PROPERTIES OUTPUT_NAME cublas SOVERSION 12)
  target_link_libraries(stand_in_cublas PRIVATE stand_in_driver)
  set_target_properties(stand_in_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2)
  target_link_libraries(stand_in_nccl PRIVATE stand_in_driver)
endif()

# Unit tests link the static archive of internals; `api` tests the shared library's exports.
file(GLOB found CONFIGURE_DEPENDS tests/unit/test_*.c)
foreach(source IN LISTS found)
  tenon_add_test_program(unit ${source} tenon_test_support)
endforeach()
foreach(name unit.cuda unit.cuda_steps unit.render)
  if(TEST ${name} AND NOT TENON_SANITIZE)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${cuda_environment})
  endif()
endforeach()
# A stand-in for OpenBLAS, and OpenBLAS itself where it is installed.
add_library(stand_in_blas SHARED tests/vendor/blas.c)
set_target_properties(stand_in_blas PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/vendor")
target_link_libraries(stand_in_blas PRIVATE tenon_warnings)
find_library(TENON_TEST_OPENBLAS NAMES libopenblas.so.0)
if(TEST unit.vendor)
  set_property(TEST unit.vendor APPEND PROPERTY ENVIRONMENT
    "TENON_OPENBLAS=$<TARGET_FILE:stand_in_blas>")
endif()
if(TEST unit.vendor AND TENON_TEST_OPENBLAS)
  tenon_add_test(unit.vendor_openblas unit unit_vendor)
  set_property(TEST unit.vendor_openblas APPEND PROPERTY ENVIRONMENT
    "TENON_OPENBLAS=${TENON_TEST_OPENBLAS}")
endif()
if(TEST unit.vendor AND NOT TENON_SANITIZE)
  tenon_add_test(unit.vendor_cuda unit unit_vendor)
  set_property(TEST unit.vendor_cuda APPEND PROPERTY ENVIRONMENT
    ${cuda_environment} "TENON_TEST_DEVICE=CUDA")
endif()
# The files of the command, without its main function.
file(GLOB found CONFIGURE_DEPENDS src/cli/core/*.c src/cli/data/*.c)
foreach(name compare_values find_difference)
  if(TARGET unit_${name})
    target_sources(unit_${name} PRIVATE ${found})
    target_link_libraries(unit_${name} PRIVATE PkgConfig::jansson)
  endif()
endforeach()
if(TARGET unit_cost_corpus)
  target_sources(unit_cost_corpus PRIVATE bench/corpus/corpus.c)
  target_include_directories(unit_cost_corpus PRIVATE "${PROJECT_SOURCE_DIR}")
endif()

# Tests of the rules, with the examples in their files.
set(examples "${TENON_GENERATED_DIR}/rules/examples.c")
file(GLOB rules CONFIGURE_DEPENDS src/rules/*.rules)
add_custom_command(OUTPUT ${examples}
                   COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0
                           $<TARGET_FILE:rulec> --tests ${examples} ${rules}
                   DEPENDS rulec ${rules} VERBATIM)
file(GLOB found CONFIGURE_DEPENDS tests/rules/test_*.c)
foreach(source IN LISTS found)
  tenon_add_test_program(rules ${source} tenon_internal)
  if(NOT TARGET rules_facts)
    break()   # excluded from this build
  endif()
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^test_" "rules_" name ${name})
  target_sources(${name} PRIVATE tests/rules/evaluate.c ${examples})
  target_include_directories(${name} PRIVATE tests/rules)
endforeach()

# Texts of graphs before and after passes: tests/ir/*.irt.
add_executable(ir_runner tests/ir/runner.c)
set_target_properties(ir_runner PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_link_libraries(ir_runner PRIVATE tenon_test_support tenon_warnings Threads::Threads m)
tenon_add_test(ir.text ir ir_runner tests/ir)

# Prints the contents of docs/pipeline.md; tests/docs checks that the page is current.
add_executable(docs_pipeline tests/docs/pipeline.c)
set_target_properties(docs_pipeline PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_link_libraries(docs_pipeline PRIVATE tenon_internal tenon_warnings Threads::Threads m)

# Random tests: programs of several files, with longer time limits.
file(GLOB found CONFIGURE_DEPENDS tests/random/*.c)
list(FILTER found EXCLUDE REGEX "/test_")
foreach(name graphs rows)
  add_executable(random_${name} tests/random/test_${name}.c ${found})
  set_target_properties(random_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_compile_definitions(random_${name} PRIVATE TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(random_${name} PRIVATE tenon_test_support tenon_warnings Threads::Threads m)
endforeach()
tenon_add_test(random.rows random random_rows)
add_executable(random_queues tests/random/test_queues.c)
set_target_properties(random_queues PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_link_libraries(random_queues PRIVATE tenon_test_support tenon_warnings Threads::Threads m)
# The same under ThreadSanitizer, in a build without: only what queues consist of is instrumented and
# replaces the archive's members; the rest of the library is linked as it is.
if(NOT TENON_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL Debug AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  file(GLOB found CONFIGURE_DEPENDS src/base/thread.c src/device/api/*.c src/device/memory/*.c
    src/device/program/*.c src/device/queue/*.c src/device/registry/*.c src/device/stream/*.c
    src/device/threads/*.c)
  add_executable(random_queues_tsan tests/random/test_queues.c ${found})
  set_target_properties(random_queues_tsan PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_compile_options(random_queues_tsan PRIVATE -fsanitize=thread -g1)
  target_link_options(random_queues_tsan PRIVATE -fsanitize=thread)
  target_link_libraries(random_queues_tsan PRIVATE
    tenon_test_support tenon_warnings Threads::Threads m)
endif()
file(GLOB found CONFIGURE_DEPENDS tests/random/programs/*.c)
add_executable(random_programs tests/random/test_programs.c ${found} tests/backend/ref.c)
set_target_properties(random_programs PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_compile_definitions(random_programs PRIVATE REF_BUFFERS=64)   # no limit on a kernel's buffers
target_link_libraries(random_programs PRIVATE tenon_internal tenon_warnings Threads::Threads m)
# Fixed seeds, different in each kind of build, so that results depend on the change alone; random
# seeds for long runs (check-long.sh).
string(SHA1 seed "${CMAKE_BUILD_TYPE} ${CMAKE_C_COMPILER_ID} ${TENON_SANITIZE}")
string(SUBSTRING ${seed} 0 6 seed)
math(EXPR seed "0x${seed} + 1")
set(graph_shards 2)   # processes among which the graphs are split, to use two cores
foreach(shard RANGE 1 ${graph_shards})
  tenon_add_test(random.graphs_${shard} random
    random_graphs --seed=${seed} --shard=${shard}/${graph_shards})
  if(TENON_TEST_SECONDS LESS 900)
    set_tests_properties(random.graphs_${shard} PROPERTIES TIMEOUT 900)
  endif()
endforeach()
tenon_add_test(random.programs random random_programs --seed=${seed})
tenon_add_test(random.queues random random_queues --seed=${seed})
if(NOT TENON_SANITIZE)   # drivers are not made for sanitizers
  tenon_add_test(random.queues_opencl random random_queues --opencl --seed=${seed})
  set_property(TEST random.queues_opencl APPEND PROPERTY
    ENVIRONMENT "POCL_DEVICES=pthread pthread")   # two devices of PoCL
  tenon_add_test(random.programs_opencl random random_programs --opencl --seed=${seed})
  tenon_add_test(random.graphs_opencl random random_graphs --opencl --seed=${seed})
  tenon_add_test(random.graphs_opencl_teams random random_graphs --opencl --seed=${seed})
  set_property(TEST random.graphs_opencl_teams APPEND PROPERTY
    ENVIRONMENT "TENON_PAIR=opencl-teams/driver")
  foreach(name queues programs graphs)
    tenon_add_test(random.${name}_cuda random random_${name} --cuda --seed=${seed})
    if(TEST random.${name}_cuda)
      set_property(TEST random.${name}_cuda APPEND PROPERTY ENVIRONMENT ${cuda_environment})
    endif()
  endforeach()
endif()
if(TARGET random_queues_tsan)
  tenon_add_test(random.queues_tsan random random_queues_tsan --seed=${seed} --programs=1000)
endif()
if(TENON_TEST_SECONDS LESS 900)
  set_tests_properties(random.programs PROPERTIES TIMEOUT 900)
endif()

file(GLOB found CONFIGURE_DEPENDS tests/api/*.c tests/api/*.cpp)
foreach(source IN LISTS found)
  tenon_add_test_program(api ${source} tenon::tenon)
endforeach()

# Each public header alone: as C11, as C++17, and as C++17 inside extern "C".
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
  include/tenon/*.h)
set(alone)
foreach(header IN LISTS headers)
  string(MAKE_C_IDENTIFIER ${header} stem)
  foreach(way IN ITEMS c.c cpp.cpp in_c.cpp)
    set(source "${TENON_GENERATED_DIR}/headers/${stem}_${way}")
    set(text "#define TENON_HEADER <${header}>\n")
    if(way STREQUAL in_c.cpp)
      string(APPEND text "#define TENON_HEADER_IN_C\n")
    endif()
    string(REPLACE in_c. cpp. checks header_${way})
    string(APPEND text "#include \"${PROJECT_SOURCE_DIR}/tests/api/${checks}\"\n")
    file(CONFIGURE OUTPUT ${source} CONTENT "${text}" @ONLY)
    list(APPEND alone ${source})
  endforeach()
endforeach()
add_library(headers_alone OBJECT ${alone})
target_link_libraries(headers_alone PRIVATE tenon::tenon tenon_warnings)

foreach(name IN LISTS TENON_SINGLE_EXAMPLES)
  tenon_add_test(example.${name} example example_${name})
endforeach()

# A backend built like a user's; the operator suite runs on it too.
add_library(ref_backend MODULE tests/backend/ref.c tests/backend/plugin.c)
set_target_properties(ref_backend PROPERTIES
  PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_compile_definitions(ref_backend PRIVATE _POSIX_C_SOURCE=200809L)
target_link_libraries(ref_backend PRIVATE tenon::tenon tenon_warnings Threads::Threads)

# Processes that tests/group/test_group.py starts.
add_executable(group_processes tests/group/processes.c)
set_target_properties(group_processes PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
target_compile_definitions(group_processes PRIVATE _POSIX_C_SOURCE=200809L)
target_link_libraries(group_processes PRIVATE tenon::tenon tenon_warnings m ${CMAKE_DL_LIBS})

file(GLOB found CONFIGURE_DEPENDS tests/*/test_*.sh tests/*/test_*.py tests/*/*/test_*.py)
foreach(script IN LISTS found)
  get_filename_component(kind ${script} DIRECTORY)
  get_filename_component(kind ${kind} NAME)
  get_filename_component(name ${script} NAME_WE)
  string(REGEX REPLACE "^test_" "${kind}." name ${name})
  if(TENON_SANITIZE AND kind STREQUAL "install")
    continue()   # users' programs are not instrumented
  endif()
  if(name STREQUAL "rules.proofs" AND TENON_SANITIZE)
    continue()   # z3 proves the rules, whatever the library is built with
  endif()
  if(name MATCHES "${left_out}")
    continue()
  endif()
  if(script MATCHES "\\.py$")
    tenon_add_test(${name} ${kind} ${TENON_PYTHON} ${script} "${PROJECT_BINARY_DIR}")
  else()
    tenon_add_test(${name} ${kind} bash ${script} "${PROJECT_BINARY_DIR}")
  endif()
  if(kind STREQUAL "rules")   # rulec does not free its memory
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  endif()
  if(name STREQUAL "ops.coverage")
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED operations_called)
  elseif(name MATCHES "^ops\\.(.*)$")
    set_tests_properties(${name} PROPERTIES FIXTURES_SETUP operations_called)
    set(name ops_ref.${CMAKE_MATCH_1})
    tenon_add_test(${name} ops_ref ${TENON_PYTHON} ${script} "${PROJECT_BINARY_DIR}")
    set_property(TEST ${name} APPEND PROPERTY
      ENVIRONMENT "TENON_TEST_BACKEND=$<TARGET_FILE:ref_backend>:REF")
  endif()
endforeach()

if(NOT TENON_SANITIZE)
  tenon_add_test(networks.opencl networks ${TENON_PYTHON} tests/models/networks/test_networks.py
    "${PROJECT_BINARY_DIR}" --opencl)
endif()

# Time limits: nine networks, each compiled several times; thousands of one-operator models.
foreach(name networks.networks networks.opencl onnx.ops random.programs_opencl random.graphs_opencl
    random.graphs_opencl_teams pairs.opencl random.programs_cuda random.graphs_cuda pairs.cuda
    cuda.nvrtc)
  if(TEST ${name} AND TENON_TEST_SECONDS LESS 900)
    set_tests_properties(${name} PROPERTIES TIMEOUT 900)
  endif()
endforeach()

if(NOT TENON_SANITIZE)
  tenon_add_test(source.layers source ${TENON_PYTHON} scripts/check-layers.py)
  tenon_add_test(source.format source bash scripts/check-format.sh)
  tenon_add_test(source.words source ${TENON_PYTHON} scripts/check-words.py)
  tenon_add_test(source.mutants source ${TENON_PYTHON} scripts/mutants.py --check)
  set(assertions --assertions)
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    set(assertions)
  endif()
  tenon_add_test(package.symbols package bash scripts/check-symbols.sh ${assertions}
    $<TARGET_FILE:tenon> $<TARGET_FILE:tenon_static>)
endif()

if(TENON_FUZZ)
  find_program(LLVM_SYMBOLIZER NAMES llvm-symbolizer-14 llvm-symbolizer REQUIRED)
  list(APPEND test_environment "ASAN_SYMBOLIZER_PATH=${LLVM_SYMBOLIZER}")
  set(fuzz "${PROJECT_BINARY_DIR}/fuzz")

  # Builds all fuzz tests, and the command for clang's warnings.
  add_custom_target(fuzzers DEPENDS tenon tenon_command)

  # Writes each fuzzer's seeds to a separate folder, which must not be empty.
  add_executable(fuzz_seeds tests/fuzz/seeds.c)
  set_target_properties(fuzz_seeds PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${fuzz}")
  target_link_libraries(fuzz_seeds PRIVATE tenon_internal)
  file(GLOB samples CONFIGURE_DEPENDS
    tests/ir/*.irt tests/random/found/*.ir tests/data/onnx/*.onnx)
  add_custom_command(OUTPUT "${fuzz}/seeds.stamp"
    COMMAND ${CMAKE_COMMAND} -E rm -rf "${fuzz}/seeds"
    COMMAND fuzz_seeds "${fuzz}/seeds" "${PROJECT_SOURCE_DIR}"
    COMMAND ${CMAKE_COMMAND} -E touch "${fuzz}/seeds.stamp"
    DEPENDS fuzz_seeds ${samples} VERBATIM)
  add_custom_target(seeds ALL DEPENDS "${fuzz}/seeds.stamp")
  add_dependencies(fuzzers seeds)

  file(GLOB found CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  foreach(source IN LISTS found)
    get_filename_component(target ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" subject ${target})
    add_executable(${target} ${source})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${fuzz}")
    target_link_libraries(${target} PRIVATE tenon_internal)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${target})

    tenon_add_test(fuzz.${subject} fuzz bash "${PROJECT_SOURCE_DIR}/tests/fuzz/run.sh"
      $<TARGET_FILE:${target}> "${fuzz}/corpus/${subject}" "${fuzz}/seeds/${subject}"
      -max_total_time=${TENON_FUZZ_SECONDS} -timeout=20 -rss_limit_mb=4096 -print_final_stats=1
      "-artifact_prefix=${fuzz}/")
    math(EXPR limit "${TENON_FUZZ_SECONDS} + 120")
    set_tests_properties(fuzz.${subject} PROPERTIES TIMEOUT ${limit})
  endforeach()
endif()
