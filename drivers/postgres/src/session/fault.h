#pragma once

#include "lockkeeper/libpq/fault.h"

namespace lockkeeper::postgres {

using libpq::Contention;
using libpq::isContention;
using libpq::NotPrimary;

}  // namespace lockkeeper::postgres
