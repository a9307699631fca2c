# Debian packages, by cpack: `lockkeeper` holds the command and the shared libraries that it runs on, `lockkeeper-dev` what
# programs are built with. They are made from shared libraries installed under /usr, as the preset `package` does.
foreach(package IN ITEMS runtime development)
  string(REPLACE runtime lockkeeper name ${package})
  string(REPLACE development lockkeeper-dev name ${name})
  string(TOUPPER LOCKKEEPER_${package} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${component}_FILE_NAME DEB-DEFAULT)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright
          COMPONENT lockkeeper_${package})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL lockkeeper_runtime lockkeeper_development)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME lockkeeper)
set(CPACK_PACKAGE_CONTACT "The lockkeeper authors")
set(CPACK_COMPONENT_LOCKKEEPER_RUNTIME_DESCRIPTION
    "The command, which runs programs under a lock and shows who holds what, and the shared libraries.")
set(CPACK_COMPONENT_LOCKKEEPER_DEVELOPMENT_DESCRIPTION "Headers and the CMake package of all components.")

set(CPACK_DEBIAN_LOCKKEEPER_RUNTIME_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_LOCKKEEPER_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LOCKKEEPER_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LOCKKEEPER_DEVELOPMENT_PACKAGE_DEPENDS
    "lockkeeper (= ${PROJECT_VERSION}), libpoco-dev, libmariadb-dev")
set(CPACK_DEBIAN_LOCKKEEPER_DEVELOPMENT_PACKAGE_SUGGESTS libgtest-dev)
include(CPack)
