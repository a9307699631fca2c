"""Conan 2 recipe. Builds the checkout in which it lies (`conan create packaging/conan`), or the release that a conandata.yml beside it
names, which packaging/make_ports writes.
"""
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rename, rmdir

required_conan_version = ">=2.1"

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
# The libraries of each component of CMake, which are components of the package under the same names.
POCO_TLS = ["poco::poco_netssl", "poco::poco_net", "poco::poco_crypto", "poco::poco_foundation"]
LINKS = {
    "core": [],
    "migration": ["core"],
    "stream": ["core", *POCO_TLS],
    "redis": ["core", "stream", *POCO_TLS],
    "mysql": ["core", "mariadb-connector-c::mariadb-connector-c", "poco::poco_foundation"],
    "libpq": ["core", "libpq::libpq"],
    "postgres": ["core", "libpq", "libpq::libpq"],
    "etcd": ["core", "stream", "poco::poco_json", *POCO_TLS],
    "inventory": ["core", "mysql", "poco::poco_data", "poco::poco_datasqlite"],
    "poco": ["core", "migration", "poco::poco_net", "poco::poco_util", "poco::poco_json", "poco::poco_foundation"],
}
SOURCES = ["CMakeLists.txt", "LICENSE", "cmake/*", "core/*", "drivers/*", "adapters/*", "cli/*", "docs/*",
           "packaging/debian/*", "tests/contract/*"]


class Lockkeeper(ConanFile):
    name = "lockkeeper"
    version = "0.1.0"
    description = "Distributed locks and rate limits for C++ services, with pluggable stores"
    license = "MIT"
    topics = ("distributed-lock", "lock", "rate-limit", "redis", "postgresql", "mysql", "etcd")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {option: [True, False] for option in [*CMAKE_OPTIONS, "fPIC"]}
    default_options = {option: option in ("redis", "fPIC") for option in options}

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

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")
        if self.options.postgres:
            self.options["libpq/*"].with_openssl = True  # for tls=on
        if self.options.mysql or self.options.inventory:
            self.options["poco/*"].enable_data_mysql = False  # it runs on MySQL's client library: a process must not have two

    def requirements(self):
        if any(self.options.get_safe(name) for name in ("redis", "mysql", "etcd", "inventory", "poco")):
            self.requires("poco/[>=1.11 <2]", transitive_headers=bool(self.options.poco))  # lockkeeper::poco has its types
        if self.options.mysql or self.options.inventory:
            self.requires("mariadb-connector-c/[>=3.1 <4]")
        if self.options.postgres:
            self.requires("libpq/[>=14 <18]")
        if self.options.prometheus:
            self.requires("prometheus-cpp/[>=1.1 <2]", transitive_headers=True)

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
        # Conan writes these itself, from package_info().
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        rename(self, os.path.join(self.package_folder, "share"), os.path.join(self.package_folder, "res"))

    def package_info(self):
        self.cpp_info.set_property("cmake_config_version_compat", "SameMinorVersion")
        built = {"core", "migration"} | {name for name in LINKS if self.options.get_safe(name)}
        if self.options.inventory:
            built.add("mysql")
        if not self.options.shared and built & {"redis", "etcd"}:
            built.add("stream")  # shared libraries contain it
        if not self.options.shared and "postgres" in built:
            built.add("libpq")
        for name in sorted(built):
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", f"lockkeeper::{name}")
            component.set_property("pkg_config_name", f"lockkeeper-{name}")
            component.libs = [f"lockkeeper_{name}"]
            component.resdirs = ["res"]
            component.requires = [each for each in LINKS[name] if each not in {"stream", "libpq"} or each in built]
        self.cpp_info.components["core"].system_libs = ["pthread"]
        if self.options.inventory and self.options.postgres:
            self.cpp_info.components["inventory"].requires += ["libpq::libpq"] if self.options.shared else ["libpq", "libpq::libpq"]
        if self.options.prometheus:
            self.cpp_info.components["poco"].requires.append("prometheus-cpp::prometheus-cpp-core")
