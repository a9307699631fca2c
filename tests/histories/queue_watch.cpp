#include "queue_watch.h"

#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/json_line.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using testing::history::Phase;

std::int64_t now() { return systemClock()->now().time_since_epoch().count(); }

/// A line as toJson() writes it.
class HistoryLine {
 public:
  explicit HistoryLine(std::string_view line) : line_(line) {}

  bool isInvokeOf(std::string_view operation) const { return is("phase", "invoke") && is("op", operation); }
  bool is(std::string_view name, std::string_view text) const {
    return from(name).starts_with("\"" + std::string(text) + "\"");
  }
  /// Without escapes, which none of the histories' keys has.
  std::string text(std::string_view name) const {
    const std::string_view value = from(name).substr(1);
    return std::string(value.substr(0, value.find('"')));
  }
  std::int64_t number(std::string_view name) const { return std::stoll(std::string(from(name))); }

 private:
  std::string_view from(std::string_view name) const {
    const std::string member = "\"" + std::string(name) + "\":";
    const std::size_t at = line_.find(member);
    return at == std::string_view::npos ? std::string_view() : line_.substr(at + member.size());
  }

  std::string_view line_;
};

}  // namespace

void QueueWatch::watch(const QueueLook& look, std::chrono::milliseconds length) {
  const std::int64_t end = now() + std::chrono::nanoseconds(length).count();
  while ((until_ = now()) < end) {
    try {
      const std::int64_t asked = until_;
      for (QueuedCaller& each : look()) sightings_.push_back({asked, 0, std::move(each)});
      const std::int64_t answered = now();
      for (auto each = sightings_.rbegin(); each != sightings_.rend() && each->answered == 0; ++each)
        each->answered = answered;
    } catch (const Error&) {  // It has seen nothing.
    }
    std::this_thread::sleep_for(2ms);
  }
}

std::string QueueWatch::disturbance(const std::string& lines) const {
  std::set<std::int64_t> locks;
  std::set<std::int64_t> releases;
  std::istringstream in(lines);
  for (std::string text; std::getline(in, text);) {
    const HistoryLine line(text);
    if (line.number("time") > until_) break;
    if (line.isInvokeOf("lock")) locks.insert(line.number("id"));
    if (line.isInvokeOf("release")) releases.insert(line.number("id"));
    const std::int64_t id = line.number("id");
    const bool isNotReleased =
        releases.contains(id) && (line.is("phase", "fail") || line.is("phase", "unknown"));
    const bool isDoubtful = locks.contains(id) && line.is("phase", "unknown");
    if (isNotReleased || isDoubtful || line.is("phase", "lost")) return text;
  }
  return {};
}

std::string QueueWatch::withQueued(const std::string& process, const std::string& lines) const {
  struct Wait {
    std::int64_t id;
    std::int64_t invoked;
    std::string key;
  };
  std::optional<Wait> wait;
  std::string all;
  std::istringstream in(lines);
  for (std::string text; std::getline(in, text); all += text + "\n") {
    const HistoryLine line(text);
    const std::int64_t time = line.number("time");
    if (line.isInvokeOf("lock")) {
      wait = {line.number("id"), time, line.text("key")};
    } else if (wait && line.number("id") == wait->id) {
      for (const Sighting& each : sightings_) {
        const bool isThis = each.who.process == process && each.who.key == wait->key;
        if (!isThis || time > until_ || each.asked < wait->invoked || each.answered > time) continue;
        all += toJson(testing::history::Record{.time = each.answered,
                                               .phase = Phase::queued,
                                               .process = process,
                                               .id = static_cast<std::uint64_t>(wait->id)}) +
               "\n";
      }
      wait.reset();
    }
  }
  return all;
}

}  // namespace lockkeeper::test
