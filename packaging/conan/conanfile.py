"""Conan 2 recipe. Builds the checkout in which it lies (`conan create packaging/conan`), or the release that a conandata.yml beside it
names, which packaging/make_ports writes.
"""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get

# Each option of the recipe, and the option of CMake that it stands for.
CMAKE_OPTIONS = {
    "shared": "BUILD_SHARED_LIBS",
    "cli": "LOCKKEEPER_BUILD_CLI",
    "etcd": "LOCKKEEPER_BUILD_ETCD",
    "inventory": "LOCKKEEPER_BUILD_INVENTORY",
    "mysql": "LOCKKEEPER_BUILD_MYSQL",
    "poco": "LOCKKEEPER_BUILD_POCO",
    "postgres": "LOCKKEEPER_BUILD_POSTGRES",
    "prometheus": "LOCKKEEPER_WITH_PROMETHEUS_CPP",
    "redis": "LOCKKEEPER_BUILD_REDIS",
}
SOURCES = ["CMakeLists.txt", "LICENSE", "cmake/*", "core/*", "drivers/*", "adapters/*", "cli/*", "docs/*",
           "packaging/debian/*", "tests/contract/*"]


class Lockkeeper(ConanFile):
    name = "lockkeeper"
    version = "0.1.0"
    description = "Distributed locks and rate limits for C++ services, with pluggable stores"
    license = "MIT"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {option: [True, False] for option in CMAKE_OPTIONS}
    default_options = {option: option == "redis" for option in CMAKE_OPTIONS}

    def export_sources(self):
        if self.conan_data:
            return
        checkout = os.path.join(self.recipe_folder, "..", "..")
        for pattern in SOURCES:
            copy(self, pattern, checkout, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def source(self):
        if self.conan_data:
            get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("lockkeeper is for Linux")
        stores = (self.options.redis or self.options.mysql or self.options.postgres or
                  self.options.etcd)
        if self.options.cli and not (self.options.poco and stores):
            raise ConanInvalidConfiguration("cli=True needs poco=True, and redis=True, mysql=True, postgres=True or "
                                            "etcd=True")
        if self.options.prometheus and not self.options.poco:
            raise ConanInvalidConfiguration("prometheus=True needs poco=True")

    def requirements(self):
        if any(self.options.get_safe(name) for name in ("redis", "mysql", "etcd", "inventory", "poco")):
            self.requires("poco/[>=1.11 <2]")
        if self.options.mysql or self.options.inventory:
            self.requires("mariadb-connector-c/[>=3.1 <4]")
        if self.options.postgres:
            self.requires("libpq/[>=14 <18]")
        if self.options.prometheus:
            self.requires("prometheus-cpp/[>=1.1 <2]")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option, variable in CMAKE_OPTIONS.items():
            toolchain.cache_variables[variable] = bool(self.options.get_safe(option))
        toolchain.cache_variables["LOCKKEEPER_BUILD_SAMPLES"] = False
        toolchain.cache_variables["LOCKKEEPER_BUILD_TESTING"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The package of CMake that the build installed is used as it is.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "lockkeeper"))
