// Gateway's connections to the members, and what is sent on them without waiting for an answer.

#include <Poco/Net/DNS.h>
#include <Poco/Net/HostEntry.h>
#include <Poco/Net/NetException.h>

#include <algorithm>
#include <utility>

#include "store/gateway.h"

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t mostIdle = 64;

Poco::Net::SocketAddress addressOf(const Member& member, std::size_t turn) {
  try {
    Poco::Net::IPAddress numeric;
    if (Poco::Net::IPAddress::tryParse(member.host, numeric)) return {numeric, member.port};
    auto addresses = Poco::Net::DNS::hostByName(member.host).addresses();
    if (addresses.empty()) throw StreamBroken("the host has no address");
    std::stable_sort(addresses.begin(), addresses.end(), [](const auto& left, const auto& right) {
      return left.family() == Poco::Net::IPAddress::IPv4 && right.family() != Poco::Net::IPAddress::IPv4;
    });
    return {addresses[turn % addresses.size()], member.port};
  } catch (const Poco::Exception& fault) {
    throw StreamBroken(fault.displayText());
  }
}

}  // namespace

std::unique_ptr<Connection> Gateway::connection(std::size_t member) {
  {
    const std::lock_guard guard(mutex_);
    // Rather one on which no reply is awaited that would have to come first.
    std::stable_partition(idle_.begin(), idle_.end(), [](const auto& each) { return each->hasLeftReply(); });
    while (!idle_.empty()) {
      auto last = std::move(idle_.back());
      idle_.pop_back();
      if (last->member() == member && last->usable()) return last;
    }
  }
  return dial(member);
}

std::unique_ptr<Connection> Gateway::dial(std::size_t member) {
  std::size_t turn = 0;
  {
    const std::lock_guard guard(mutex_);
    turn = dials_++;
  }
  const Member& to = options_.members[member];
  return std::make_unique<Connection>(member, to.host, addressOf(to, turn), tls_);
}

void Gateway::giveBack(std::unique_ptr<Connection> connection) {
  if (connection->member() != current() || !connection->usable()) return;
  const std::lock_guard guard(mutex_);
  if (idle_.size() < mostIdle) idle_.push_back(std::move(connection));
}

void Gateway::leave(std::string_view path, std::string_view body) noexcept {
  try {
    const std::string token = knownToken();
    if (token.empty() != options_.user.empty()) return;
    auto used = connection(current());
    if (!used->connected()) return;
    used->post(path, fieldsFor(used->member(), token), body);
    if (!used->advance(clock(), Instant::min())) {
      if (!used->allSent()) return;
      used->leaveReply();
    }
    giveBack(std::move(used));
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
