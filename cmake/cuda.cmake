# medley_enable_cuda(): nvcc for the kernels of this folder, a macro since a language belongs to a folder. Sets MEDLEY_NVCC.
include(CheckLanguage)
macro(medley_enable_cuda)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  check_language(CUDA)
  set(MEDLEY_NVCC OFF)
  if(CMAKE_CUDA_COMPILER)
    set(MEDLEY_NVCC ON)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)   # newer devices compile the PTX of the last one at load time
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)   # CMake 3.25 does not know this option of nvcc 13
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
  endif()
endmacro()

# medley_kernels(NAME source.cu …): the static library medley_NAME of kernels, which includes headers of src/backends/FOLDER.
function(medley_kernels name folder)
  add_library(medley_${name} STATIC ${ARGN})
  set_target_properties(medley_${name} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_RUNTIME_LIBRARY Static
                        POSITION_INDEPENDENT_CODE ON)
  target_include_directories(medley_${name} PRIVATE ${CMAKE_BINARY_DIR}/modules/${folder} ${PROJECT_SOURCE_DIR}/include)
endfunction()
