#include "lockkeeper/listener_group.h"

#include <stdexcept>
#include <utility>

#include "lockkeeper/internal/hook.h"

namespace lockkeeper {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

ListenerGroup::ListenerGroup(std::vector<std::shared_ptr<Listener>> members) : members_(std::move(members)) {
  for (const auto& each : members_) {
    if (each == nullptr) throw std::invalid_argument("a ListenerGroup has a listener that is null");
  }
}

template <class Hook>
void ListenerGroup::tellAll(Hook hook) const noexcept {
  for (const auto& each : members_) callHook([&] { hook(*each); });
}

void ListenerGroup::acquired(std::string_view key, nanoseconds waited, std::optional<Fence> fence) {
  tellAll([&](Listener& each) { each.acquired(key, waited, fence); });
}

void ListenerGroup::timedOut(std::string_view key, nanoseconds waited) {
  tellAll([&](Listener& each) { each.timedOut(key, waited); });
}

void ListenerGroup::gaveUp(std::string_view key, ErrorCode why, nanoseconds waited) {
  tellAll([&](Listener& each) { each.gaveUp(key, why, waited); });
}

void ListenerGroup::renewed(std::string_view key) {
  tellAll([&](Listener& each) { each.renewed(key); });
}

void ListenerGroup::suspect(std::string_view key, nanoseconds remaining) {
  tellAll([&](Listener& each) { each.suspect(key, remaining); });
}

void ListenerGroup::lost(std::string_view key, LossReason reason) {
  tellAll([&](Listener& each) { each.lost(key, reason); });
}

void ListenerGroup::released(std::string_view key, nanoseconds held) {
  tellAll([&](Listener& each) { each.released(key, held); });
}

void ListenerGroup::decided(std::string_view key, const Decision& decision) {
  tellAll([&](Listener& each) { each.decided(key, decision); });
}

void ListenerGroup::refused(std::string_view key, std::string_view policy, microseconds retryAfter) {
  tellAll([&](Listener& each) { each.refused(key, policy, retryAfter); });
}

void ListenerGroup::storeFailed(std::string_view key, ErrorCode code, std::string_view message) {
  tellAll([&](Listener& each) { each.storeFailed(key, code, message); });
}

void ListenerGroup::nodeAsked(std::string_view node, NodeOutcome outcome, nanoseconds latency) {
  tellAll([&](Listener& each) { each.nodeAsked(node, outcome, latency); });
}

void ListenerGroup::noted(std::string_view store, std::string_view message) {
  tellAll([&](Listener& each) { each.noted(store, message); });
}

}  // namespace lockkeeper
