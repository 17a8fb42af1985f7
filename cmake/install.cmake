# Installation: headers, the library, the command (src/cli) and the package for find_package.
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
