// Gateway's connections to the members, and what is sent on them without waiting for an answer.

#include <algorithm>
#include <utility>

#include "store/gateway.h"

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t mostIdle = 64;

}  // namespace

std::unique_ptr<Connection> Gateway::connection(std::size_t member) {
  auto made = kept(member);
  return made ? std::move(made) : dial(member);
}

std::unique_ptr<Connection> Gateway::kept(std::size_t member) {
  while (true) {
    std::unique_ptr<Connection> taken;
    {
      const std::lock_guard guard(mutex_);
      if (idle_.empty()) return nullptr;
      // Rather one on which no reply is due that would have to come first.
      std::stable_partition(idle_.begin(), idle_.end(),
                            [](const auto& each) { return each->hasIgnoredReply(); });
      taken = std::move(idle_.back());
      idle_.pop_back();
    }
    if (taken->member() == member && taken->usable(clock())) return taken;
  }
}

std::unique_ptr<Connection> Gateway::dial(std::size_t member) {
  return std::make_unique<Connection>(member, *hosts_[member], tls_, clock().now());
}

void Gateway::keepIdle(std::unique_ptr<Connection> connection) {
  if (connection->member() != current() || !connection->usable(clock())) return;
  const std::lock_guard guard(mutex_);
  if (idle_.size() < mostIdle) idle_.push_back(std::move(connection));
}

void Gateway::send(std::string_view path, std::string_view body) noexcept {
  try {
    const std::string token = knownToken();
    if (token.empty() != options_.user.empty()) return;
    auto used = kept(current());
    if (!used) return;
    used->post(path, fieldsFor(used->member(), token), body);
    if (!used->advance(clock(), Instant::min())) {
      if (!used->allSent()) return;
      used->ignoreReply();
    }
    keepIdle(std::move(used));
  } catch (const std::exception&) {
  }
}

std::unique_ptr<Connection> Gateway::stream(std::string_view path, std::string_view body, Instant deadline) {
  const std::string token = this->token(deadline);
  const std::size_t member = current();
  auto made = dial(member);
  made->post(path, fieldsFor(member, token), body);
  return made;
}

}  // namespace lockkeeper::etcd
