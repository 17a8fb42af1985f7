# Installs the build into a fresh prefix, moves that prefix, and builds and runs the consumer against it: by CMake, and as
# docs/installing.md does it without CMake.
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)   # no file in it may contain the install location
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${COMPILER} -DWANTED_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
run(${WORK}/prefix/bin/medley run -n 2 -- ${WORK}/build/consumer)

if(NOT EXISTS ${WORK}/prefix/share/doc/medley/LICENSE)
  message(FATAL_ERROR "the license is not installed")
endif()
find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message(STATUS "pkg-config is not here, so medley.pc is not tried")
  return()
endif()
file(GLOB_RECURSE pc ${WORK}/prefix/*/medley.pc)
get_filename_component(folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
run(${PKG_CONFIG} --exact-version=${VERSION} medley)
run(bash -c "${COMPILER} $(pkg-config --cflags medley) ${SOURCE}/consumer.cpp -o ${WORK}/plain $(pkg-config --libs medley) -Wl,-rpath,$(pkg-config --variable=libdir medley)")
run(${WORK}/prefix/bin/medley run -n 2 -- ${WORK}/plain)
