#pragma once

#include "database_server.h"

namespace lockkeeper::bench {

inline const char* inWords(test::Brand brand) { return brand == test::Brand::mariadb ? "MariaDB" : "MySQL"; }

/// What its server is called in command lines.
inline const char* serverOf(test::Brand brand) {
  return brand == test::Brand::mariadb ? "mariadbd" : "mysqld";
}

}  // namespace lockkeeper::bench
