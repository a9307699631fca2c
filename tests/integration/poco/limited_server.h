#pragma once

#include <Poco/AutoPtr.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Util/AbstractConfiguration.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "curl.h"
#include "lockkeeper/poco/rate_limit_filter.h"

namespace lockkeeper::test {

/// The text of a .properties file, read.
Poco::AutoPtr<Poco::Util::AbstractConfiguration> properties(const std::string& text);

/// What an application sets in code.
struct FilterHooks {
  poco::UserOf user{};
  std::function<void(const poco::RateLimitReport& report)> report{};
  std::shared_ptr<Listener> listener{};  ///< Of the limiter.
};

/// RateLimitOptions of such a text.
poco::RateLimitOptions limitOptions(const std::string& settings, const FilterHooks& hooks = {});

/// An HTTP server on a free loopback port whose handlers echo the body, behind a filter.
class LimitedServer {
 public:
  /// `limits` is the store's URI; `served` is called by each handler before it answers.
  LimitedServer(const std::string& limits, const std::string& settings, const FilterHooks& hooks = {},
                std::function<void()> served = {});
  ~LimitedServer();

  std::string url(const std::string& target) const;
  /// Runs curl with these arguments and the URL of `target`.
  CurlAnswer get(const std::string& target, std::vector<std::string> arguments = {}) const;
  CurlAnswer post(const std::string& target, const std::string& body,
                  std::vector<std::string> arguments = {}) const;

  /// How many requests have come through the filter.
  int served() const { return served_; }
  poco::RateLimitFilter& filter() { return filter_; }

 private:
  std::atomic<int> served_ = 0;
  std::function<void()> serving_;
  poco::RateLimitFilter filter_;
  std::unique_ptr<Poco::Net::HTTPServer> server_;
};

}  // namespace lockkeeper::test
