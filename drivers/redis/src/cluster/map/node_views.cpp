#include "cluster/map/node_views.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lockkeeper/internal/whole_number.h"
#include "wire/mux/multiplexer.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

constexpr std::string_view permissions = "+@connection +info +cluster|info +cluster|slots";

std::vector<RedisOptions> optionsOf(const std::vector<NodeAddress>& addresses, RedisOptions options) {
  options.cluster = ClusterUse::informant;
  options.minReplicas = 0;
  std::vector<RedisOptions> nodes;
  for (const NodeAddress& address : addresses) {
    options.host = address.host;
    options.port = address.port;
    nodes.push_back(options);
  }
  return nodes;
}

// Of a line "name:number" in CLUSTER INFO.
std::uint64_t numberIn(std::string_view info, std::string_view name) {
  const std::size_t at = info.find(name);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = info.substr(at + name.size());
  return wholeNumber<std::uint64_t>(rest.substr(0, rest.find_first_of("\r\n"))).value_or(0);
}

std::optional<NodeView> viewIn(const Answer& answer, const NodeAddress& node) {
  if (!answer.complete() || answer.replies[0].kind != ReplyKind::bulk) return std::nullopt;
  const std::string& info = answer.replies[0].text;
  auto map = SlotMap::read(answer.replies[1], node);
  if (!map) return std::nullopt;
  return NodeView{.node = node,
                  .epoch = numberIn(info, "cluster_current_epoch:"),
                  .knownNodes = numberIn(info, "cluster_known_nodes:"),
                  .map = std::move(*map)};
}

bool hasView(const Answer& answer) {
  return answer.complete() && answer.replies[1].kind == ReplyKind::array && !answer.replies[1].items.empty();
}

ServerFault faultOf(const Answer& answer, const std::string& store) {
  if (!answer.complete()) return {answer.code, answer.why};
  for (const Reply& reply : answer.replies) {
    if (reply.kind == ReplyKind::error) return faultOf(store, reply, permissions);
  }
  return {ErrorCode::storeUnavailable, store + " does not answer CLUSTER SLOTS like Redis"};
}

}  // namespace

NodeViews askNodes(const std::vector<NodeAddress>& addresses, std::chrono::nanoseconds patience,
                   const RedisOptions& options, const Environment& environment, Instant deadline) {
  Multiplexer nodes(optionsOf(addresses, options), silent(environment));
  Request request(nodes.size());
  request.add({"CLUSTER", "INFO"});
  request.add({"CLUSTER", "SLOTS"});
  const auto anyView = [](const Request& asked) {
    for (const Answer& each : asked.answers()) {
      if (hasView(each)) return true;
    }
    return false;
  };
  // Those that are set up wrongly do not hide what the others know.
  AskRules rules{.mayBeMisconfigured = nodes.size(), .patience = patience};
  nodes.ask(request, rules, deadline);
  const bool allMisconfigured = std::ranges::all_of(
      request.answers(), [](const Answer& each) { return each.code == ErrorCode::config; });
  if (!anyView(request) && !allMisconfigured) {
    // The connections go on being made meanwhile.
    rules.patience = AskRules::untilDeadline;
    rules.enough = anyView;
    nodes.ask(request, rules, deadline);
  }

  NodeViews found;
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const Answer& answer = request.answers()[index];
    if (auto view = viewIn(answer, addresses[index])) {
      found.views.push_back(std::move(*view));
      continue;
    }
    ServerFault fault = faultOf(answer, nodes.store(index));
    if (found.failure.empty()) found.failure = fault.text;
    if (fault.code == ErrorCode::config) {
      found.misconfigured.push_back({addresses[index], std::move(fault.text)});
    }
  }
  return found;
}

}  // namespace lockkeeper::redis
