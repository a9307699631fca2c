#pragma once

#include <ostream>
#include <string>

#include "fault_proxy.h"
#include "redis_server.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// A way for a node to be of no use, and the way back.
struct NodeFault {
  const char* name;
  bool answers;  ///< In the end: once it was asked, it may look well again.
  void (*strike)(RedisServer& server, FaultProxy& proxy);
  void (*heal)(RedisServer& server, FaultProxy& proxy);
};

extern const NodeFault nodeFaults[5];

void PrintTo(const NodeFault& fault, std::ostream* out);
inline std::string faultName(const ::testing::TestParamInfo<NodeFault>& info) { return info.param.name; }

}  // namespace lockkeeper::test
