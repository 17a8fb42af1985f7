# Installation: headers, the library, the command (src/cli), the license, and the packages for find_package and pkg-config.
include(CMakePackageConfigHelpers)
set(medley_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/medley)

install(TARGETS medley EXPORT medleyTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/medley DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
install(EXPORT medleyTargets NAMESPACE medley:: DESTINATION ${medley_package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/medleyConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/medleyConfig.cmake INSTALL_DESTINATION ${medley_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/medleyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/medleyConfig.cmake ${PROJECT_BINARY_DIR}/medleyConfigVersion.cmake
        DESTINATION ${medley_package_dir})

# pkg-config finds the prefix from its own file, so that an installation may be moved.
file(RELATIVE_PATH medley_prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" medley_prefix_from_pc "${medley_prefix_from_pc}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/medley.pc.in ${PROJECT_BINARY_DIR}/medley.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/medley.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
