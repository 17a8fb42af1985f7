# Modules: one folder of src/ and one target each. A module sees the headers of the modules that it names in USES, of those that they
# use, and the public ones in include/; any other include does not compile. A module can only use modules declared before it, so there
# are no cycles. docs/architecture.md shows the graph, which tests/docs/module_graph.py draws from these declarations.
add_library(medley_public INTERFACE)   # the API and the plugin SDK
target_include_directories(medley_public INTERFACE ${PROJECT_SOURCE_DIR}/include)

# medley_headers(NAME FOLDER): the target medley_NAME_headers, which gives others the headers of src/FOLDER. Its include
# directory contains only a link to that folder.
function(medley_headers name folder)
  cmake_path(GET folder PARENT_PATH above)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/modules/${name}/${above})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${folder} ${CMAKE_BINARY_DIR}/modules/${name}/${folder} SYMBOLIC)
  add_library(medley_${name}_headers INTERFACE)
  target_include_directories(medley_${name}_headers INTERFACE ${CMAKE_BINARY_DIR}/modules/${name})
  target_link_libraries(medley_${name}_headers INTERFACE medley_public)
endfunction()

# medley_module(NAME [IN_LIBRARY] [FOLDER folder] [USES module…] [LIBRARIES target…] [PUBLIC_LIBRARIES target…]): all *.cpp of src/FOLDER
# (default src/NAME) as the target medley_NAME. IN_LIBRARY: an object library that becomes part of libmedley.so; otherwise a static
# library for the command and for Python, which uses modules of libmedley.so through its exported symbols.
function(medley_module name)
  cmake_parse_arguments(M "IN_LIBRARY" "FOLDER" "USES;LIBRARIES;PUBLIC_LIBRARIES" ${ARGN})
  if(NOT M_FOLDER)
    set(M_FOLDER ${name})
  endif()
  medley_headers(${name} ${M_FOLDER})
  set_property(GLOBAL APPEND PROPERTY medley_modules "${name}: ${M_USES}")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${M_FOLDER}/*.cpp)
  if(M_IN_LIBRARY)
    add_library(medley_${name} OBJECT ${sources})
    set_property(GLOBAL APPEND PROPERTY medley_library_modules medley_${name})
    # Nobody replaces the library's functions at run time, so the compiler may inline those that it exports; and thread-local
    # variables are reached by a shorter call. A small message gains from both.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(medley_${name} PRIVATE -fno-semantic-interposition
                             $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-mtls-dialect=gnu2>)
      # Two fields that were just stored and are then loaded as one vector must reach the cache first. On the way of a message that is
      # behind stores to lines of other cores.
      if(name MATCHES "^(engine|comm|record|shm)$")
        target_compile_options(medley_${name} PRIVATE -fno-tree-slp-vectorize)
      endif()
    endif()
  else()
    add_library(medley_${name} STATIC ${sources})
    target_link_libraries(medley_${name} PUBLIC medley)
  endif()
  foreach(used ${M_USES})
    if(NOT TARGET medley_${used})
      message(FATAL_ERROR "module ${name} uses ${used}, which is not declared before it in src/CMakeLists.txt")
    endif()
    target_link_libraries(medley_${name}_headers INTERFACE medley_${used}_headers)
    get_target_property(kind medley_${used} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      target_link_libraries(medley_${name} PUBLIC medley_${used})
    endif()
  endforeach()
  target_link_libraries(medley_${name}_headers INTERFACE ${M_PUBLIC_LIBRARIES})
  target_link_libraries(medley_${name} PUBLIC medley_${name}_headers ${M_PUBLIC_LIBRARIES}
                        PRIVATE medley_flags fmt::fmt Threads::Threads ${M_LIBRARIES})
endfunction()
