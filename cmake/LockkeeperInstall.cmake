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
    LIBRARY COMPONENT lockkeeper_libraries NAMELINK_COMPONENT lockkeeper_development)
  install(EXPORT lockkeeper-${name} NAMESPACE lockkeeper:: DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
endfunction()

function(lockkeeper_install_package)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lockkeeperConfig.cmake.in
    ${PROJECT_BINARY_DIR}/lockkeeperConfig.cmake INSTALL_DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockkeeperConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/lockkeeper COMPONENT lockkeeper_license)
  install(FILES ${PROJECT_BINARY_DIR}/lockkeeperConfig.cmake ${PROJECT_BINARY_DIR}/lockkeeperConfigVersion.cmake
          DESTINATION ${LOCKKEEPER_PACKAGE_DIR})
endfunction()

# lockkeeper_pkg_config(<name> [PUBLIC libs…] [PRIVATE libs…]): lockkeeper-<name>.pc. What a component links is needed by those
# who link it statically; of the project's own libraries the headers need the public ones.
function(lockkeeper_pkg_config name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  set(requires ${arg_PUBLIC})
  list(FILTER requires INCLUDE REGEX "^lockkeeper::")
  set(linked)
  if(NOT BUILD_SHARED_LIBS)
    set(linked ${arg_PUBLIC} ${arg_PRIVATE})
  endif()
  list(FILTER linked EXCLUDE REGEX "BUILD_INTERFACE")
  set(requires_private ${linked})
  list(FILTER requires_private INCLUDE REGEX "^lockkeeper::|^MySQL::client$|^LibPQ::client$|^Poco::Crypto$")
  list(REMOVE_ITEM requires_private "" ${requires})
  foreach(list IN ITEMS requires requires_private)
    string(REPLACE "lockkeeper::" "lockkeeper-" ${list} "${${list}}")
    string(REPLACE "MySQL::client" "libmariadb" ${list} "${${list}}")
    string(REPLACE "LibPQ::client" "libpq" ${list} "${${list}}")
    string(REPLACE "Poco::Crypto" "openssl" ${list} "${${list}}")  # which comes with it
    list(JOIN ${list} ", " ${list})
  endforeach()
  set(libraries ${linked})
  list(FILTER libraries INCLUDE REGEX "^Poco::|^Threads::Threads$")
  # A static library needs all that it names to come after it, Poco's foundation last.
  if(Poco::Foundation IN_LIST libraries)
    list(REMOVE_ITEM libraries Poco::Foundation)
    list(APPEND libraries Poco::Foundation)
  endif()
  lockkeeper_link_flags(libraries ${libraries})
  file(RELATIVE_PATH up_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" up_to_prefix ${up_to_prefix})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/lockkeeper.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/lockkeeper-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/lockkeeper-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# lockkeeper_link_flags(<out> <target>…): as pkg-config names them. By the names of the files: those of a debug build may end in d.
function(lockkeeper_link_flags out)
  set(flags)
  set(location LOCATION)
  if(CMAKE_BUILD_TYPE)
    string(TOUPPER LOCATION_${CMAKE_BUILD_TYPE} location)
  endif()
  foreach(target IN LISTS ARGN)
    if(target STREQUAL "Threads::Threads")
      list(APPEND flags -pthread)
    else()
      get_target_property(file ${target} ${location})
      get_filename_component(file ${file} NAME_WE)
      string(REGEX REPLACE "^lib" "-l" file ${file})
      list(APPEND flags ${file})
    endif()
  endforeach()
  list(JOIN flags " " flags)
  set(${out} ${flags} PARENT_SCOPE)
endfunction()
