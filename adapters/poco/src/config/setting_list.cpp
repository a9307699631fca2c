#include "config/setting_list.h"

#include <ostream>
#include <sstream>

#include "config/setting_table.h"

namespace lockkeeper::poco {
namespace {

constexpr const char* pageHead = R"(# Configuration

<!-- Written by `cmake --build build --target configuration_page` from adapters/poco/src/config/setting_table.cpp and http_rows.cpp. -->

These are the settings that `lockkeeper::poco` reads from an application's configuration: a .properties, .json or .xml file, or
several layers of them. [poco.md](poco.md) shows the program. The command reads the same settings with
`lockkeeper … --config FILE`. An application prints this list with `--help-lockkeeper`.

```properties
lockkeeper.store = redis://:${REDIS_PASSWORD}@10.0.0.5:6379/0
lockkeeper.namespace = shop
lockkeeper.lock.ttl = 10s
lockkeeper.limits.sms.rate = 2/s
lockkeeper.limits.sms.burst = 10
```

```json
{"lockkeeper": {"store": "memory:", "lock": {"ttl": "10s"}, "limits": {"sms": {"rate": "2/s", "burst": 10}}}}
```

```xml
<config>
  <lockkeeper><store>memory:</store><lock><ttl>10s</ttl></lock></lockkeeper>
</config>
```

- An unknown setting anywhere in `lockkeeper.*` is an error, which names the most similar known setting. (In XML, write elements.
  Poco does not list attributes, so they are ignored.)
- A duration is a whole number with a unit: `250ms`, `30s`, `5m`, `1h`. A rate is a number by a time, in `ms`, `s`, `min`, `h` or
  `day`. A name has 1 to 64 characters of `[A-Za-z0-9_.-]`. An empty value counts as none.
- A password in a URI may be `${NAME}`, the environment variable of that name, or be in a file:
  `?passwordFile=/run/secrets/store` ([drivers](drivers/)). Poco replaces references to other settings, such as
  `${shop.redisHost}` or `${system.env.HOST}`. Unlike `${NAME}`, these are inserted as they are, without percent-encoding.
- `*` stands for a name that you choose. The name may contain dots. If a route has two limits, neither name may be a prefix of the
  other: `sms` and `sms.perDay` are refused.
- The defaults are those of the library's options.
)";

/// `lockkeeper.lock` of lockkeeper.lock.ttl, `lockkeeper` of lockkeeper.store.
std::string_view sectionOf(const SettingRow& row) {
  const auto first = row.name.find('.');
  const auto second = row.name.find('.', first + 1);
  return row.name.substr(0, second == std::string_view::npos ? first : second);
}

std::string withoutCodeMarks(std::string_view markdown) {
  std::string plain;
  for (const char c : markdown) {
    if (c != '`') plain += c;
  }
  return plain;
}

}  // namespace

void printSettings(std::ostream& out) {
  for (const SettingRow& row : settingTable()) {
    out << row.name << " = " << row.value << " [" << withoutCodeMarks(row.shownDefault()) << "]\n    "
        << withoutCodeMarks(row.meaning) << "\n";
  }
}

std::string settingsPage() {
  std::ostringstream page;
  page << pageHead;
  std::string_view section;
  for (const SettingRow& row : settingTable()) {
    if (sectionOf(row) != section) {
      section = sectionOf(row);
      page << "\n## " << section << "\n\n| setting | value | default | meaning |\n|---|---|---|---|\n";
    }
    page << "| `" << row.name << "` | " << row.value << " | " << row.shownDefault() << " | " << row.meaning
         << " |\n";
  }
  return page.str();
}

}  // namespace lockkeeper::poco
