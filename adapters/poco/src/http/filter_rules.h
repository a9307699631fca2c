#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "http/route/client_address.h"
#include "http/route/key_source.h"
#include "http/route/route_list.h"

namespace lockkeeper::poco {

/// What a filter goes by: its options, checked, and never changed after that. A `Route` has a name, a pattern
/// and `static Route of(given, options)`, which throws ConfigError for what is not allowed.
template <class OptionsOfFilter, class Route>
class FilterRules {
 public:
  using Options = OptionsOfFilter;

  /// Throws ConfigError that names the setting.
  explicit FilterRules(Options options) : options_(std::move(options)), address_(options_.clients) {
    checkFilter(options_);
    for (const auto& given : options_.routes) routes_.push_back(Route::of(given, options_));
    sortRoutes(routes_);
  }
  FilterRules(const FilterRules&) = delete;
  FilterRules& operator=(const FilterRules&) = delete;

  /// The most specific route that matches, or null.
  const Route* find(std::string_view method, const std::vector<std::string>& path) const {
    return findRoute(routes_, method, path);
  }

  RequestFacts facts(const Poco::Net::HTTPServerRequest& request,
                     const std::vector<std::string>& path) const {
    return {request, path, address_, options_.clients.user};
  }

  const Options& options() const { return options_; }

 private:
  const Options options_;
  const ClientAddress address_;
  std::vector<Route> routes_;
};

/// The rules that requests which come now go by. Thread-safe.
template <class Rules>
class PresentRules {
 public:
  using Options = typename Rules::Options;

  /// Throws as Rules does.
  explicit PresentRules(Options options) : rules_(std::make_shared<const Rules>(std::move(options))) {}

  std::shared_ptr<const Rules> rules() const {
    const std::lock_guard guard(mutex_);
    return rules_;
  }

  /// Hooks that the new options do not set stay. Throws as Rules does, and then the present rules stay.
  void reload(Options options) {
    const auto present = rules();
    const Options& old = present->options();
    if (!options.report) options.report = old.report;
    if (!options.clients.user) options.clients.user = old.clients.user;
    if constexpr (requires { options.isFinal; }) {
      if (!options.isFinal) options.isFinal = old.isFinal;
      if (!options.clock) options.clock = old.clock;
    }
    auto fresh = std::make_shared<const Rules>(std::move(options));
    const std::lock_guard guard(mutex_);
    rules_.swap(fresh);  // the old ones end with their last request
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Rules> rules_;
};

}  // namespace lockkeeper::poco
