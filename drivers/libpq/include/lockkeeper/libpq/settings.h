#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockkeeper::libpq {

/// Names and values, without quotes.
using Settings = std::vector<std::pair<std::string_view, std::string>>;

/// A list for SELECT that gives a session these settings, and those that all of our statements need whatever
/// the server's defaults are. With `isLocal`, until the end of the transaction.
std::string pinning(const Settings& settings, bool isLocal);

}  // namespace lockkeeper::libpq
