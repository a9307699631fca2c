# Finds MariaDB's client library and defines MySQL::client, which Poco::DataMySQL links as well. Not MySQL's own: a
# process must not hold both, and the drivers need options that it does not have.
include(FindPackageHandleStandardArgs)

# The package of vcpkg says what a static library needs besides; Poco's own one there links it, too.
find_package(unofficial-libmariadb CONFIG QUIET)
if(TARGET unofficial::libmariadb)
  set(MySQL_LIBRARY unofficial::libmariadb)
  set(MySQL_INCLUDE_DIR "")
  find_package_handle_standard_args(MySQL REQUIRED_VARS MySQL_LIBRARY)
else()
  find_path(MySQL_INCLUDE_DIR mysql/mysql.h)
  find_library(MySQL_LIBRARY NAMES mariadb)
  find_package_handle_standard_args(MySQL REQUIRED_VARS MySQL_LIBRARY MySQL_INCLUDE_DIR)
  mark_as_advanced(MySQL_INCLUDE_DIR MySQL_LIBRARY)
endif()

if(MySQL_FOUND AND NOT TARGET MySQL::client)
  add_library(MySQL::client INTERFACE IMPORTED)
  target_link_libraries(MySQL::client INTERFACE ${MySQL_LIBRARY})
  target_include_directories(MySQL::client INTERFACE ${MySQL_INCLUDE_DIR})
endif()
