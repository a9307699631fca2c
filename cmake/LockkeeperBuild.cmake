# How every target of the project is compiled, and how each component is installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

find_package(Threads REQUIRED)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(LOCKKEEPER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lockkeeper)

# Language mode, warnings and sanitizers of one target.
function(lockkeeper_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if(LOCKKEEPER_DEVELOPER)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
  endif()
  if(LOCKKEEPER_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LOCKKEEPER_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${LOCKKEEPER_SANITIZE})
  endif()
endfunction()

# lockkeeper_component(<name> SOURCES … [PUBLIC libs…] [PRIVATE libs…])
# A library lockkeeper::<name> with public headers in include/, installed and exported on its own, so that
# find_package(lockkeeper COMPONENTS <name>) brings in nothing else than it and what it links.
function(lockkeeper_component name)
  lockkeeper_add_library(${name} ${ARGN})
  lockkeeper_install_component(${name})
endfunction()

# lockkeeper_internal_component(<name> SOURCES … [PUBLIC libs…] [PRIVATE libs…])
# What several components share and users do not see: as lockkeeper_component(), but its headers stay here.
function(lockkeeper_internal_component name)
  lockkeeper_add_library(${name} ${ARGN})
  lockkeeper_export(${name})
endfunction()

function(lockkeeper_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  set(target lockkeeper_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(lockkeeper::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  lockkeeper_compile_options(${target})
endfunction()

# Installs and exports the target lockkeeper_<name>, and installs the headers in include/.
function(lockkeeper_install_component name)
  lockkeeper_export(${name})
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endfunction()

function(lockkeeper_export name)
  install(TARGETS lockkeeper_${name} EXPORT lockkeeper-${name})
  install(EXPORT lockkeeper-${name} NAMESPACE lockkeeper:: DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
  set_property(GLOBAL APPEND PROPERTY LOCKKEEPER_COMPONENTS ${name})
endfunction()

function(lockkeeper_install_package)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lockkeeperConfig.cmake.in
    ${PROJECT_BINARY_DIR}/lockkeeperConfig.cmake INSTALL_DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockkeeperConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/lockkeeperConfig.cmake ${PROJECT_BINARY_DIR}/lockkeeperConfigVersion.cmake
          DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
endfunction()
