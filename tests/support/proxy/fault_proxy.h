#pragma once

#include "lockkeeper/testing/fault_proxy.h"

namespace lockkeeper::test {

using testing::Ending;
using testing::FaultProxy;
using testing::ProxyFault;

}  // namespace lockkeeper::test
