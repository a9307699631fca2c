#include "hosts/host_report.h"

#include <algorithm>
#include <optional>

#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

void checkOneGroup(std::span<const HostReport> reports, const ServerOptions& options) {
  const HostReport* first = nullptr;
  for (const HostReport& each : reports) {
    if (each.group.empty()) continue;
    if (first == nullptr) first = &each;
    if (each.group == first->group) continue;
    const auto name = [&](const HostReport& report) {
      return options.hosts[static_cast<std::size_t>(&report - reports.data())].display;
    };
    throw ConfigError(name(*first) + " and " + name(each) + " belong to different replication groups (" +
                      first->group + ", " + each.group +
                      "): locks of one would not exclude those of the other");
  }
}

std::string whyNone(std::span<const HostReport> reports, const ServerOptions& options) {
  std::string text = options.display + ": none of its hosts takes writes";
  for (std::size_t i = 0; i < reports.size(); ++i) {
    text += "; ";
    text +=
        reports[i].state == HostState::silent ? options.hosts[i].display + ": no answer yet" : reports[i].why;
  }
  return text;
}

}  // namespace

std::size_t writableAmong(std::span<const HostReport> reports, const ServerOptions& options) {
  const auto unfit = std::ranges::find(reports, HostState::unfit, &HostReport::state);
  if (unfit != reports.end()) throw ConfigError(unfit->why);
  checkOneGroup(reports, options);
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].state != HostState::writable) continue;
    if (!chosen) {
      chosen = i;
    } else if (reports[i].server.empty() || reports[i].server != reports[*chosen].server) {
      throw StoreUnavailable(options.hosts[*chosen].display + " and " + options.hosts[i].display +
                             " both take writes: all hosts but one must be read-only");
    }
  }
  if (chosen) return *chosen;
  const bool allRefuse =
      std::ranges::all_of(reports, [](const HostReport& each) { return each.state == HostState::refused; });
  if (allRefuse) throw ConfigError(whyNone(reports, options));
  throw StoreUnavailable(whyNone(reports, options));
}

}  // namespace lockkeeper::mysql
