# Installs headers and the CMake package, so that find_package(neuron_kernels) works.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/neuron_kernels)
install(DIRECTORY include/neuron_kernels DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inl")
install(TARGETS neuron_kernels EXPORT neuron_kernels_targets)
install(EXPORT neuron_kernels_targets NAMESPACE neuron_kernels:: DESTINATION ${package_dir})
configure_file(cmake/config.cmake.in neuron_kernels-config.cmake @ONLY)
write_basic_package_version_file(neuron_kernels-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/neuron_kernels_pull.cmake
              ${PROJECT_BINARY_DIR}/neuron_kernels-config.cmake
              ${PROJECT_BINARY_DIR}/neuron_kernels-config-version.cmake DESTINATION ${package_dir})
