#pragma once

#include <fstream>
#include <ostream>
#include <string>

#include "message.h"

namespace sms_gateway {

/// Stands for the provider that sends short messages: writes a line for each. One thread at a time.
class Outbox {
 public:
  /// Appends to `file`; to standard output when that is empty. Throws lockkeeper::ConfigError when it cannot
  /// be opened.
  explicit Outbox(const std::string& file);

  /// Throws std::runtime_error when it could not be written.
  void send(const Job& job);

 private:
  std::ofstream file_;
  std::ostream& out_;
};

}  // namespace sms_gateway
