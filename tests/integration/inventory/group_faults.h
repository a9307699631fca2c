#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "database/database.h"
#include "database_server.h"
#include "fault_proxy.h"
#include "lockkeeper/error.h"
#include "shop.h"

namespace lockkeeper::test {

const inventory::StockOptions impatient{.operationTimeout = std::chrono::seconds{4}};

using Answers = std::vector<std::string>;

/// "unavailable", "unknown", or what the error says.
inline std::string nameOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const StoreUnavailable&) {
    return "unavailable";
  } catch (const OutcomeUnknown&) {
    return "unknown";
  } catch (const std::exception& other) {
    return other.what();
  }
}

/// A server beside which groups of calls are written as the service does it, without the threads, through a
/// proxy that fails.
class GroupFaults : public ::testing::TestWithParam<Backend> {
 protected:
  /// Writes a group whose ids begin with the name.
  using Write = std::function<Answers(const std::string& name, inventory::Database& database)>;
  using IsThere = std::function<bool(const std::string& name)>;

  /// Cuts the replies to a group at every `step` bytes in turn: it is written once and answered as ever.
  void endInTheTruth(const Write& write, std::size_t step, const IsThere& isThere) {
    const Answers expected = write("connect", distant);
    proxy.passThrough();
    ASSERT_EQ(write("measure", distant), expected);
    const std::size_t replyBytes = proxy.replyBytes();
    ASSERT_GT(replyBytes, 20U);
    for (std::size_t bytes = 0; bytes < replyBytes; bytes += step) {
      const std::string name = std::to_string(1'000'000 + bytes);  // As long as "measure".
      proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
      EXPECT_EQ(write(name, distant), expected) << "cut after " << bytes << " bytes";
      EXPECT_EQ(proxy.fired(), 1U) << "nothing was cut after " << bytes << " bytes";
      EXPECT_TRUE(isThere(name)) << "cut after " << bytes << " bytes";
    }
  }

  StockServer& server = serverOf(GetParam());
  Shop shop{GetParam()};
  inventory::StockService service = shop.service(inventory::Way::conditionalUpdate, impatient);
  inventory::Database near{shop.uri(), impatient};
  Poco::Data::Session watching = shop.session();
  FaultProxy proxy{server.port()};
  inventory::Database distant{shop.uriBy(proxy.port()), impatient};
};

}  // namespace lockkeeper::test
