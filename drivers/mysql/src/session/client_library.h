#pragma once

// MariaDB's client library. Most packages have its headers in a folder `mysql`; Conan's has the folder itself
// in the include path.
#if __has_include(<mysql/mysql.h>)
#include <mysql/errmsg.h>
#include <mysql/mysql.h>
#else
#include <errmsg.h>
#include <mysql.h>
#endif
