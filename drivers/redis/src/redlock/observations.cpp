#include "redlock/observations.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>
#include <vector>

#include "lockkeeper/base/key.h"
#include "scripts.h"
#include "wire/protocol/script.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

// One start of this machine, on whose boot clock all its processes agree, unless they are in different time
// namespaces. Empty when the system does not tell.
std::string thisMachine() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const bool isId = !boot.empty() && boot.find_first_not_of("0123456789abcdef-") == std::string::npos;
  std::array<char, 64> target{};
  const auto length = ::readlink("/proc/self/ns/time", target.data(), target.size());
  std::string space;
  for (const char c : std::string_view(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0)) {
    if (c >= '0' && c <= '9') space.push_back(c);
  }
  return isId ? boot + "." + space : std::string();
}

std::string millis(std::chrono::nanoseconds length) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(length).count());
}

}  // namespace

Observations::Observations(Multiplexer& nodes, Voters& voters, const Environment& environment,
                           milliseconds guard)
    : nodes_(nodes), voters_(voters), environment_(environment), guard_(guard), machine_(thisMachine()) {}

void Observations::exchange(std::size_t quorum, std::chrono::nanoseconds patience, Instant deadline) {
  if (voters_.knowNobody()) meetNodes(quorum, patience, deadline);
  // Read before the request is sent, and after each of the starts was met.
  const Instant asked = environment_.clock->now();
  const std::vector<Voters::Start> starts = voters_.toObserve(asked);
  if (starts.empty()) return;
  AskRules rules{.nodes = std::vector<bool>(nodes_.size()), .needed = 0, .patience = patience};
  std::vector<std::string> words = {machine_, millis(asked.time_since_epoch()),
                                    std::to_string(guard_.count())};
  for (const Voters::Start& each : starts) {
    rules.nodes[each.node] = true;
    words.push_back(each.runId);
    // Rounded up: not before it was met.
    words.push_back(millis(each.metAt.time_since_epoch() + milliseconds{1}));
  }
  const std::vector<std::string_view> arguments(words.begin(), words.end());
  const std::string key = std::string(reservedMark) + "run";
  Request request(nodes_.size());
  Script::of<scripts::observe_run>().addTo(request, Script::By::text, std::array<std::string_view, 1>{key},
                                           arguments);
  nodes_.ask(request, rules, deadline);
  for (const Voters::Start& each : starts) {
    const Answer& answer = request.answers()[each.node];
    if (!answer.complete()) continue;
    const Reply& left = answer.replies[0];
    if (left.kind == ReplyKind::error) tellOfRefusal(each.node, left);
    if (left.kind != ReplyKind::integer || left.integer < 0 || left.integer > guard_.count()) continue;
    voters_.observed(each, asked, milliseconds{left.integer});
  }
}

// Connects to the nodes, and asks none of them.
void Observations::meetNodes(std::size_t quorum, std::chrono::nanoseconds patience, Instant deadline) {
  const AskRules rules{.nodes = std::vector<bool>(nodes_.size()), .needed = quorum, .patience = patience};
  Request nothing(nodes_.size());
  nodes_.ask(nothing, rules, deadline);
}

void Observations::tellOfRefusal(std::size_t node, const Reply& error) {
  const ServerFault fault =
      faultOf(nodes_.store(node), error, "+get, +set and +info, on the key :lockkeeper:run");
  if (fault.code != ErrorCode::config || told_.exchange(true)) return;
  const std::string text = "each process observes this node for itself before it votes, since " + fault.text;
  environment_.tell({.kind = EventKind::noted, .store = nodes_.store(node), .text = text});
}

}  // namespace lockkeeper::redis
