# A build folder that was configured before an MPI was installed finds it afterwards: a project that looks for MPICH where the only
# compiler wrapper is Open MPI's, and again once MPICH's is beside it. -DFIND_MPI=, -DMAKE= and -DFOLDER= say what and where.
file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(found_later LANGUAGES NONE)\n\
include(\"${FIND_MPI}\")\nfind_mpi(mpich FOUND)\nmessage(STATUS \"missing: <\${FOUND_MISSING}>\")\n")

function(install_mpi wrapper library header)
  file(WRITE ${FOLDER}/${library}/mpi.h "${header}\n")
  file(WRITE ${FOLDER}/${library}/lib${library}.so "")
  file(WRITE ${FOLDER}/bin/${wrapper} "#!/bin/sh\necho cc -I${FOLDER}/${library} -L${FOLDER}/${library} -l${library}\n")
  file(CHMOD ${FOLDER}/bin/${wrapper} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()

function(expect_missing reason)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PATH=${FOLDER}/bin ${CMAKE_COMMAND} -S ${FOLDER} -B ${FOLDER}/build -G Ninja -DCMAKE_MAKE_PROGRAM=${MAKE}
            -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_LIBRARY_PREFIXES=lib -DCMAKE_FIND_LIBRARY_SUFFIXES=.so
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT output MATCHES "missing: <${reason}>")
    message(FATAL_ERROR "expected <${reason}>, but configuring said:\n${output}")
  endif()
endfunction()

install_mpi(mpicc mpi "#define OPEN_MPI 1")
expect_missing("[^>]*/mpi/mpi.h is another MPI's")
install_mpi(mpicc.mpich mpich "#define MPICH_VERSION 4")
expect_missing("")
