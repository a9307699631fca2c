# How components are installed and exported, each on its own.
include(CMakePackageConfigHelpers)

# What is not said to be needed at run time is for developers.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME lockkeeper_development)
set(LOCKKEEPER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lockkeeper)

# Installs and exports the target lockkeeper_<name>, and installs the headers in include/.
function(lockkeeper_install_component name)
  lockkeeper_export(${name})
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endfunction()

function(lockkeeper_export name)
  install(TARGETS lockkeeper_${name} EXPORT lockkeeper-${name}
    LIBRARY COMPONENT lockkeeper_runtime NAMELINK_COMPONENT lockkeeper_development)
  install(EXPORT lockkeeper-${name} NAMESPACE lockkeeper:: DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
endfunction()

function(lockkeeper_install_package)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lockkeeperConfig.cmake.in
    ${PROJECT_BINARY_DIR}/lockkeeperConfig.cmake INSTALL_DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockkeeperConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/lockkeeperConfig.cmake ${PROJECT_BINARY_DIR}/lockkeeperConfigVersion.cmake
          DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
endfunction()
