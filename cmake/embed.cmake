# Texts that travel inside the program, so that it works from any folder.
# medley_embed(TARGET FILE SYMBOL): FILE's text as medley::embedded::SYMBOL, rebuilt when FILE changes.
function(medley_embed target file symbol)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cpp)
  add_custom_command(OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${generated} -DSYMBOL=${symbol}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake)
  target_sources(${target} PRIVATE ${generated})
endfunction()
# medley_embed_folder(TARGET NAME FILES...): the files as medley::embedded::NAME, a list of (stem, text).
function(medley_embed_folder target name)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  add_custom_command(OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" -DOUTPUT=${generated} -DNAME=${name}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_folder.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_folder.cmake VERBATIM)
  target_sources(${target} PRIVATE ${generated})
endfunction()
