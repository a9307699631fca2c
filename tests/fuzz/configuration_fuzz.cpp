// Files of properties of arbitrary bytes: what Poco reads of them is a configuration, or refused with a
// ConfigError in one line.

#include <Poco/Exception.h>
#include <Poco/Util/PropertyFileConfiguration.h>

#include <sstream>
#include <string>

#include "fuzz_target.h"
#include "lockkeeper/error.h"
#include "lockkeeper/poco/settings.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const Poco::AutoPtr<Poco::Util::PropertyFileConfiguration> configuration(
        new Poco::Util::PropertyFileConfiguration(file));
    const lockkeeper::poco::Settings settings = lockkeeper::poco::readSettings(*configuration);
    (void)settings.policies();
  } catch (const lockkeeper::ConfigError& fault) {
    requireOneLine(fault);
  } catch (const Poco::Exception&) {  // of the file itself
  }
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  return {
      "lockkeeper.store = redis://127.0.0.1:6379/0\n",
      "lockkeeper.lock.ttl = 30s\nlockkeeper.lock.retryPause = 100ms\n",
      "lockkeeper.limits.sms.rate = 100/min\nlockkeeper.limits.sms.kind = sliding-window\n",
      "lockkeeper.tasks.purge.cron = 30 2 * * *\nlockkeeper.tasks.purge.ttl = 1m\n",
      "lockkeeper.migration.from = redis+legacy://127.0.0.1\nlockkeeper.migration.rules = order:* = both\n",
      "lockkeeper.http.limits.sms.route = POST /sms\nlockkeeper.http.limits.sms.key = json phone | e164\n",
      "store = memory:\nlockkeeper.store = ${store}\n",
      "lockkeeper.store = ${lockkeeper.store}\n"};
}
