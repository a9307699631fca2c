# How every target of the project is compiled.
include(GNUInstallDirs)
include(GenerateExportHeader)
include(LockkeeperInstall)

find_package(Threads REQUIRED)
if(NOT DEFINED CMAKE_POSITION_INDEPENDENT_CODE)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # for shared libraries of users that contain a static one of ours
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Language mode, warnings and sanitizers of one target.
function(lockkeeper_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(LOCKKEEPER_DEVELOPER)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
  endif()
  if(CMAKE_UNITY_BUILD)  # Then a file's own names are seen in those after it, and a source counts as a header.
    target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(LOCKKEEPER_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LOCKKEEPER_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${LOCKKEEPER_SANITIZE})
  endif()
endfunction()

# lockkeeper_component(<name> SOURCES … [PUBLIC libs…] [PRIVATE libs…])
# A library lockkeeper::<name> with public headers in include/, installed and exported on its own, so that
# find_package(lockkeeper COMPONENTS <name>) brings in nothing else than it and what it links. Static, or shared with
# BUILD_SHARED_LIBS; then only what carries LOCKKEEPER_<NAME>_EXPORT, of the generated header export.h, can be linked.
function(lockkeeper_component name)
  lockkeeper_add_library(${name} "" ${ARGN})
  set(target lockkeeper_${name})
  string(TOUPPER ${target} macro)
  set(folder lockkeeper/${name})
  if(name STREQUAL "core")
    set(folder lockkeeper)
  endif()
  generate_export_header(${target} BASE_NAME ${macro} EXPORT_FILE_NAME include/${folder}/export.h)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>)
  if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/internal)
    # What the project's own components share and nobody else sees: not installed.
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/internal>)
  endif()
  lockkeeper_install_component(${name})
  lockkeeper_pkg_config(${name} ${ARGN})
  install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# lockkeeper_more_headers(<name> <folder>)
# Public headers that the component shares with others, in a folder beside them: each of them installs all it needs.
function(lockkeeper_more_headers name folder)
  get_filename_component(folder ${folder} ABSOLUTE)
  target_include_directories(lockkeeper_${name} PUBLIC $<BUILD_INTERFACE:${folder}>)
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# lockkeeper_internal_component(<name> SOURCES … [PUBLIC libs…] [PRIVATE libs…])
# What several components share and users do not see: always static, its headers stay here. Shared components take it in;
# users of static ones must link it, so there it is installed.
function(lockkeeper_internal_component name)
  lockkeeper_add_library(${name} STATIC ${ARGN})
  if(NOT BUILD_SHARED_LIBS)
    lockkeeper_export(${name})
    lockkeeper_pkg_config(${name} ${ARGN})
  endif()
endfunction()

function(lockkeeper_add_library name type)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  set(target lockkeeper_${name})
  add_library(${target} ${type} ${arg_SOURCES})
  add_library(lockkeeper::${name} ALIAS ${target})
  # The ABI may change with each minor version, as long as the major one is 0.
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    # Hidden visibility does not reach the templates of std and Poco, whose namespaces or classes say "default".
    set(script ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map)
    target_link_options(${target} PRIVATE LINKER:--version-script=${script})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${script} INSTALL_RPATH $ORIGIN)
  endif()
  lockkeeper_compile_options(${target})
  if(LOCKKEEPER_DEVELOPER AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # A thread that a store kept from ending in time runs on while the process exits: nothing static that it uses may be
    # destroyed.
    target_compile_options(${target} PRIVATE -Wexit-time-destructors)
  endif()
endfunction()
