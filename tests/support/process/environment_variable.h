#pragma once

#include <cstdlib>
#include <string>

namespace lockkeeper::test {

/// Sets a variable of this process's environment while it lives.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() { ::unsetenv(name_); }

 private:
  const char* const name_;
};

}  // namespace lockkeeper::test
