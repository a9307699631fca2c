#include "wire/protocol/request.h"

#include "wire/mux/channel.h"

namespace lockkeeper::redis {

Request::~Request() {
  if (channel_ != nullptr) channel_->abandon(*this);
}

void Request::add(std::span<const std::string_view> words) {
  appendCommand(commands_, words);
  replies_.emplace_back();
}

void Request::clear() {
  commands_.clear();
  replies_.clear();
  finished_ = false;
  failure_.reset();
}

}  // namespace lockkeeper::redis
