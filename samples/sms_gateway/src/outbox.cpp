#include "outbox.h"

#include <iostream>
#include <stdexcept>

#include "lockkeeper/error.h"

namespace sms_gateway {

Outbox::Outbox(const std::string& file) : out_(file.empty() ? std::cout : file_) {
  if (file.empty()) return;
  file_.open(file, std::ios::app);
  if (!file_) throw lockkeeper::ConfigError("cannot write to the outbox " + lockkeeper::quoted(file));
}

void Outbox::send(const Job& job) {
  // Whoever sends for real should be told of redeliveries, too, if he can look whether he has had the id.
  out_ << (job.delivery == 1 ? "sent      " : "sent again ") + toJson(job.message) + '\n' << std::flush;
  if (!out_) throw std::runtime_error("the outbox cannot be written");
}

}  // namespace sms_gateway
