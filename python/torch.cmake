# medley.torch._c10d, built against the interpreter's torch. torch's CMake package would look for a CUDA
# toolkit; only the paths of its headers and libraries are needed.
execute_process(COMMAND ${Python_EXECUTABLE} -c "import pathlib, torch; print(pathlib.Path(torch.__file__).parent)"
                OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  message(STATUS "medley: the torch.distributed backend is left out: ${Python_EXECUTABLE} has no torch")
  return()
endif()

file(GLOB torch_sources CONFIGURE_DEPENDS src/torch/*.cpp)
Python_add_library(medley_torch MODULE WITH_SOABI ${torch_sources})
target_include_directories(medley_torch SYSTEM PRIVATE ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
foreach(library torch_python torch torch_cpu c10)
  target_link_libraries(medley_torch PRIVATE ${torch_root}/lib/lib${library}.so)
endforeach()
target_link_libraries(medley_torch PRIVATE medley medley_flags)
target_compile_options(medley_torch PRIVATE -g1)   # full debug information of all of torch would be most of the file
# torch's own headers take most of the compile time: one unity build, unless there is a core for each source.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
set(in_one_go ON)
if(cores GREATER 8)
  set(in_one_go OFF)
endif()
set_target_properties(medley_torch PROPERTIES OUTPUT_NAME _c10d UNITY_BUILD ${in_one_go} UNITY_BUILD_BATCH_SIZE 0
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/medley/torch INSTALL_RPATH "$ORIGIN/../lib"
                      BUILD_WITH_INSTALL_RPATH OFF)
add_dependencies(medley_wheel medley_torch)
install(TARGETS medley_torch LIBRARY DESTINATION medley/torch COMPONENT python EXCLUDE_FROM_ALL)
