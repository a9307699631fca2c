# Debian packages, by cpack: `lockkeeper` holds the command, `liblockkeeperMAJOR.MINOR` the shared libraries, and
# `lockkeeper-dev` what programs are built with. They are made from shared libraries installed under /usr, as the preset
# `package` does.
set(LOCKKEEPER_MAINTAINER "" CACHE STRING
    "Who makes the Debian packages, as `Name <address>`; empty: DEBFULLNAME and DEBEMAIL say it, or git does")
function(lockkeeper_set_maintainer)
  set(name "$ENV{DEBFULLNAME}")
  set(email "$ENV{DEBEMAIL}")
  foreach(part IN ITEMS name email)
    if(NOT ${part})
      execute_process(COMMAND git config user.${part} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                      OUTPUT_VARIABLE ${part} OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
  endforeach()
  if(name AND email)
    set(LOCKKEEPER_MAINTAINER "${name} <${email}>" PARENT_SCOPE)
  endif()
endfunction()
if(NOT LOCKKEEPER_MAINTAINER)
  lockkeeper_set_maintainer()
endif()
set(name_of_runtime lockkeeper)
set(name_of_libraries liblockkeeper${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(name_of_development lockkeeper-dev)

string(TIMESTAMP LOCKKEEPER_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${PROJECT_SOURCE_DIR}/packaging/debian/changelog.in ${PROJECT_BINARY_DIR}/debian/changelog @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/packaging/debian/overrides.in ${PROJECT_BINARY_DIR}/debian/overrides @ONLY)

# Only cpack, which installs each component by itself, takes what is EXCLUDE_FROM_ALL: an ordinary install has no use for it.
foreach(package IN ITEMS runtime libraries development)
  set(name ${name_of_${package}})
  string(TOUPPER LOCKKEEPER_${package} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${component}_FILE_NAME DEB-DEFAULT)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright
          COMPONENT lockkeeper_${package} EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/debian/changelog DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
          COMPONENT lockkeeper_${package} EXCLUDE_FROM_ALL)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/debian/overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
        RENAME ${name_of_libraries} COMPONENT lockkeeper_libraries EXCLUDE_FROM_ALL)
# Below /usr a package's unit may only be where systemd looks.
install(FILES packaging/systemd/lockkeeper@.service DESTINATION lib/systemd/system COMPONENT lockkeeper_runtime EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL lockkeeper_runtime lockkeeper_libraries lockkeeper_development)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Between installing and packing: no RUNPATH below /usr, and compressed pages.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian/finish_files.cmake)
set(CPACK_PACKAGE_NAME lockkeeper)
set(CPACK_PACKAGE_CONTACT ${LOCKKEEPER_MAINTAINER})
set(CPACK_COMPONENT_LOCKKEEPER_RUNTIME_DESCRIPTION "command that runs programs under a distributed lock
 lockkeeper runs a program while it holds a lock, shows who holds which lock,
 limits how often something happens, and moves a fleet of services from one
 store to another.")
set(CPACK_COMPONENT_LOCKKEEPER_LIBRARIES_DESCRIPTION "distributed locks and rate limits, shared libraries
 lockkeeper gives C++ services locks and rate limits that programs on many
 machines share, kept in Redis, etcd, MariaDB, MySQL or PostgreSQL. This
 package has its shared libraries.")
set(CPACK_COMPONENT_LOCKKEEPER_DEVELOPMENT_DESCRIPTION "distributed locks and rate limits, development files
 lockkeeper gives C++ services locks and rate limits that programs on many
 machines share. This package has the headers and what CMake and pkg-config
 need.")

set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_LOCKKEEPER_RUNTIME_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_LOCKKEEPER_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LOCKKEEPER_RUNTIME_PACKAGE_DEPENDS "${name_of_libraries} (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_LOCKKEEPER_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LOCKKEEPER_LIBRARIES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
# A trigger tells ldconfig. cpack would write scripts that call it, unless it is given some: these do not exist, so none are
# packed.
set(CPACK_DEBIAN_LOCKKEEPER_LIBRARIES_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/packaging/debian/triggers;/nonexistent/postinst;/nonexistent/postrm")
set(CPACK_DEBIAN_LOCKKEEPER_LIBRARIES_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_LOCKKEEPER_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LOCKKEEPER_DEVELOPMENT_PACKAGE_DEPENDS
    "${name_of_libraries} (= ${PROJECT_VERSION}), libpoco-dev, libmariadb-dev, libpq-dev")
set(CPACK_DEBIAN_LOCKKEEPER_DEVELOPMENT_PACKAGE_SUGGESTS libgtest-dev)
include(CPack)
