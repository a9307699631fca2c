# Finds PostgreSQL's client library and defines LibPQ::client.
include(FindPackageHandleStandardArgs)

# CMake's own module, or the package of vcpkg or Conan, says what a static library needs besides. An old one of CMake finds
# nothing where the headers of the server are missing.
find_package(PostgreSQL QUIET)
if(TARGET PostgreSQL::PostgreSQL)
  set(LibPQ_LIBRARY PostgreSQL::PostgreSQL)
  set(LibPQ_INCLUDE_DIR "")
  find_package_handle_standard_args(LibPQ REQUIRED_VARS LibPQ_LIBRARY)
else()
  find_path(LibPQ_INCLUDE_DIR libpq-fe.h PATH_SUFFIXES postgresql)
  find_library(LibPQ_LIBRARY NAMES pq)
  find_package_handle_standard_args(LibPQ REQUIRED_VARS LibPQ_LIBRARY LibPQ_INCLUDE_DIR)
  mark_as_advanced(LibPQ_INCLUDE_DIR LibPQ_LIBRARY)
endif()

if(LibPQ_FOUND AND NOT TARGET LibPQ::client)
  add_library(LibPQ::client INTERFACE IMPORTED)
  target_link_libraries(LibPQ::client INTERFACE ${LibPQ_LIBRARY})
  target_include_directories(LibPQ::client INTERFACE ${LibPQ_INCLUDE_DIR})
endif()
