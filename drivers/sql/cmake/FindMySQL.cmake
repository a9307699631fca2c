# Finds the MySQL or MariaDB client library and defines MySQL::client, which Poco::DataMySQL links.
include(FindPackageHandleStandardArgs)

find_path(MySQL_INCLUDE_DIR mysql/mysql.h)
find_library(MySQL_LIBRARY NAMES mariadb mysqlclient)
find_package_handle_standard_args(MySQL REQUIRED_VARS MySQL_LIBRARY MySQL_INCLUDE_DIR)
mark_as_advanced(MySQL_INCLUDE_DIR MySQL_LIBRARY)

if(MySQL_FOUND AND NOT TARGET MySQL::client)
  add_library(MySQL::client UNKNOWN IMPORTED)
  set_target_properties(MySQL::client PROPERTIES
    IMPORTED_LOCATION "${MySQL_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MySQL_INCLUDE_DIR}")
endif()
