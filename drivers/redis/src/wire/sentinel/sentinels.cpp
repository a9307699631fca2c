#include "wire/sentinel/sentinels.h"

#include <Poco/Net/IPAddress.h>

#include <map>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

constexpr std::string_view sentinelPermissions = "+auth +client +info +sentinel|get-master-addr-by-name";

std::vector<RedisOptions> nodesOf(const RedisOptions& options) {
  const SentinelOptions& sentinel = *options.sentinel;
  RedisOptions node = options;
  node.sentinel.reset();
  node.database = 0;
  node.minReplicas = 0;
  node.user = sentinel.user;
  node.password = sentinel.password;
  node.tls = sentinel.tls;
  std::vector<RedisOptions> nodes;
  for (std::size_t index = 0; index < sentinel.hosts.size(); ++index) {
    node.host = sentinel.hosts[index];
    node.port = sentinel.ports[index];
    nodes.push_back(node);
  }
  return nodes;
}

/// What a sentinel has said; without a port: nothing that makes sense.
Sentinels::Master masterIn(const Reply& reply) {
  if (reply.kind != ReplyKind::array || reply.items.size() != 2) return {};
  const std::string& host = reply.items[0].text;
  const auto port = wholeNumber<std::uint16_t>(reply.items[1].text);
  return host.empty() || !port ? Sentinels::Master{} : Sentinels::Master{host, *port};
}

}  // namespace

/// What the sentinels have said so far.
struct Sentinels::Votes {
  explicit Votes(const Request& request) {
    for (const redis::Answer& each : request.answers()) {
      if (!each.complete()) {
        if (failure.empty()) failure = each.why;
        continue;
      }
      const Reply& reply = each.replies.front();
      const Master master = masterIn(reply);
      if (master.port != 0) {
        const std::size_t count = ++named[master.name()];
        if (count > most) {
          most = count;
          first = master;
        }
      } else if (reply.kind == ReplyKind::nil) {
        ++ignorant;
      } else if (failure.empty()) {
        failure = "a sentinel's answer was " +
                  (reply.kind == ReplyKind::error ? std::string(errorClass(reply)) : "no address");
      }
    }
  }

  std::map<std::string, std::size_t> named{};
  Master first{};  // named most often
  std::size_t most = 0;
  std::size_t ignorant = 0;  // that know no such master
  std::string failure{};
};

Sentinels::Sentinels(const RedisOptions& options, const Environment& environment)
    : master_(options.sentinel->master),
      majority_(options.sentinel->hosts.size() / 2 + 1),
      environment_(environment),
      lookupTimeout_(options.connectTimeout / 2),
      server_(nodesOf(options), silent(environment), {},
              {.needs = {.check = checkSentinel, .permissions = sentinelPermissions}}) {}

Sentinels::Master Sentinels::find(Instant deadline) {
  Request request(server_.size());
  request.add({"SENTINEL", "get-master-addr-by-name", master_});
  const AskRules rules{.needed = majority_,
                       .mayBeMisconfigured = server_.size() - majority_,
                       .patience = (deadline - environment_.clock->now()) / 2,
                       .enough = [this](const Request& asked) { return Votes(asked).most >= majority_; }};
  server_.ask(request, rules, deadline);
  tellOfMisconfigured(request);
  const Votes votes(request);
  if (votes.most >= majority_) return votes.first;
  if (votes.ignorant >= majority_) {
    throw ConfigError("the sentinels do not know a master of the name " + quoted(master_));
  }
  throw StoreUnavailable(fewAgree(votes));
}

void Sentinels::tellOfMisconfigured(const Request& request) {
  for (std::size_t index = 0; index < server_.size(); ++index) {
    const redis::Answer& answer = request.answers()[index];
    if (answer.complete() || answer.code != ErrorCode::config) continue;
    {
      const std::lock_guard guard(mutex_);
      if (!told_.insert(index).second) continue;
    }
    const std::string text = "this sentinel has no vote, since it is set up wrongly: " + answer.why;
    environment_.tell({.kind = EventKind::noted, .store = server_.store(index), .text = text});
  }
}

std::string Sentinels::fewAgree(const Votes& votes) const {
  std::string text = "fewer than " + std::to_string(majority_) + " of " + std::to_string(server_.size()) +
                     " sentinels agree on the master";
  for (const auto& [name, count] : votes.named) text += "; " + std::to_string(count) + " for " + name;
  if (votes.ignorant > 0) text += "; " + std::to_string(votes.ignorant) + " without a master of that name";
  return votes.failure.empty() ? text : text + "; " + votes.failure;
}

Resolver Sentinels::resolver(const std::shared_ptr<Sentinels>& sentinels) {
  return [sentinels](const std::string& /*host*/, std::uint16_t /*port*/) -> Location {
    const Instant deadline = saturatingAdd(sentinels->environment_.clock->now(), sentinels->lookupTimeout_);
    const Master master = sentinels->find(deadline);
    Poco::Net::IPAddress numeric;
    if (Poco::Net::IPAddress::tryParse(master.host, numeric)) {
      return {{Poco::Net::SocketAddress(numeric, master.port)}, master.host};
    }
    return {resolveBySystem(master.host, master.port).addresses, master.host};
  };
}

}  // namespace lockkeeper::redis
