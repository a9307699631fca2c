#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockkeeper::test {

/// What the curl command was answered.
struct CurlAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;

  /// Empty when there is no such field.
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

/// Runs `curl` with `arguments` for one request. Throws std::runtime_error when it gets no answer.
CurlAnswer curl(const std::vector<std::string>& arguments);

}  // namespace lockkeeper::test
