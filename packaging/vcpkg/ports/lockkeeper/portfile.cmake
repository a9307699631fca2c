# Builds the checkout in which it lies; elsewhere LOCKKEEPER_SOURCE in the environment names the sources. packaging/make_ports puts
# vcpkg_from_github() in the place of these lines.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
if(DEFINED ENV{LOCKKEEPER_SOURCE})
    set(SOURCE_PATH "$ENV{LOCKKEEPER_SOURCE}")
endif()
if(NOT EXISTS "${SOURCE_PATH}/cmake/lockkeeperConfig.cmake.in")
    message(FATAL_ERROR "No sources of lockkeeper in ${SOURCE_PATH}. Use the port where it lies, with "
                        "--overlay-ports=LOCKKEEPER/packaging/vcpkg/ports, or name the folder of the sources by "
                        "LOCKKEEPER_SOURCE and VCPKG_KEEP_ENV_VARS=LOCKKEEPER_SOURCE in the environment")
endif()

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        cli             LOCKKEEPER_BUILD_CLI
        etcd            LOCKKEEPER_BUILD_ETCD
        inventory       LOCKKEEPER_BUILD_INVENTORY
        mysql           LOCKKEEPER_BUILD_MYSQL
        poco-adapters   LOCKKEEPER_BUILD_POCO
        postgres        LOCKKEEPER_BUILD_POSTGRES
        prometheus      LOCKKEEPER_WITH_PROMETHEUS_CPP
        redis           LOCKKEEPER_BUILD_REDIS
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        -DLOCKKEEPER_BUILD_SAMPLES=OFF
        -DLOCKKEEPER_BUILD_TESTING=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/lockkeeper)
vcpkg_fixup_pkgconfig()
if("cli" IN_LIST FEATURES)
    vcpkg_copy_tools(TOOL_NAMES lockkeeper AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
