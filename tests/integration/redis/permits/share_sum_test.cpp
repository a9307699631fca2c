// Whatever the scripts for shares of a key are asked, in whatever order: the sum of the shares is what the
// head says, and each share is counted once.

#include <iostream>

#include "chosen_seed.h"
#include "redis_fixture.h"
#include "scripts.h"

namespace lockkeeper::test {
namespace {

// Calls of the claims in ARGV, late and repeated as they may be, ARGV[2] of them, chosen by the seed ARGV[1].
// Returns what was called if the sum is wrong after one of them, else "right".
constexpr std::string_view walk = R"lua(
  math.randomseed(ARGV[1])
  local function isOneOf(number)
    return math.random(number) == 1
  end
  local function call(value)
    local weight, limit = string.match(value, '@(%d+)/(%d+)$')
    local ttl, which = isOneOf(4) and '1' or '60000', math.random(8)
    if which <= 3 then
      return 'acquire', acquire(KEYS, {value, ttl, weight, limit, '1000', isOneOf(4) and 'ahead' or ''})
    elseif which <= 5 then
      return 'wait', queue(KEYS, {'waitShare', value, '1', '', '', ttl, '0'})
    elseif which == 6 then
      return 'release', queue(KEYS, {'releaseShare', value})
    elseif which == 7 then
      return 'renew', renew(KEYS, {value, ttl})
    elseif isOneOf(4) then
      return 'resize', queue(KEYS, {'resize', '', tostring(1 + math.random(2))})
    end
    return 'break', queue(KEYS, {'break', isOneOf(8) and '' or redis.sha1hex(value)})
  end
  local history = {}
  for number = 1, ARGV[2] do
    local value = ARGV[2 + math.random(#ARGV - 2)]
    local what, reply = call(value)
    table.insert(history, what .. ' ' .. value .. ': ' .. tostring(type(reply) == 'table' and reply[1] or reply))
    local members = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
    local sum = 0
    for index = 3, #members, 2 do
      sum = sum + string.match(members[index], '@(%d+)/%d+$')
    end
    if members[1] and (members[1] ~= 'permits' or members[2] % 2 ^ 20 ~= sum) then
      table.insert(history, 'the head says ' .. members[2] % 2 ^ 20 .. ' of ' .. sum)
      return table.concat(history, '\n')
    end
  end
  return 'right')lua";

class ShareSum : public RedisFaultTest {
 protected:
  using Words = std::vector<std::string>;

  std::string run(std::string_view script, const Words& arguments) const {
    Words words = {"EVAL", std::string(script), "3", "k", "{k}:lockkeeper:queue", "{k}:lockkeeper:waiters"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return server.command(words);
  }

  static std::string function(std::string_view name, std::string_view script) {
    return "local function " + std::string(name) + "(KEYS, ARGV)\n" + std::string(script) + "\nend\n";
  }

  const std::string a = std::string(32, 'a') + "@a:1@1/3";
  const std::string b = std::string(32, 'b') + "@b:1@1/3";
  const std::string c = std::string(32, 'c') + "@c:1@2/3";
  const std::string d = std::string(32, 'd') + "@d:1@3/3";
};

TEST_F(ShareSum, IsWhatTheHeadSaysInEveryOrderOfLateAndRepeatedCalls) {
  const unsigned seed = chosenSeed() % 1'000'000;
  std::cout << "LOCKKEEPER_SEED=" << seed << "\n";
  const std::string script = function("acquire", redis::scripts::acquire_permits) +
                             function("renew", redis::scripts::renew_permits) +
                             function("queue", redis::scripts::queue) + std::string(walk);
  // Leases end between the walks.
  for (unsigned number = 0; number < 100; ++number) {
    if (number % 4 == 0) server.command({"FLUSHALL"});
    ASSERT_EQ(run(script, {std::to_string(seed + number), "200", a, b, c, d}), "right");
  }
}

TEST_F(ShareSum, OfAClaimThatAlsoWaitsIsCountedOnceSoThatTheNextOneFits) {
  const std::string acquire = std::string(redis::scripts::acquire_permits);
  const std::string queue = std::string(redis::scripts::queue);
  run(acquire, {d, "60000", "3", "3", "1000", ""});
  run(queue, {"waitShare", c, "1", "", "", "60000", "0"});
  server.command({"DEL", "k"});
  run(acquire, {c, "60000", "2", "3", "1000", "ahead"});
  run(acquire, {b, "60000", "1", "3", "1000", "ahead"});
  run(queue, {"waitShare", a, "1", "", "", "60000", "0"});
  EXPECT_EQ(run(queue, {"releaseShare", b}), "1");
  EXPECT_NE(server.command({"ZSCORE", "k", a}), "");
  EXPECT_EQ(server.command({"ZCARD", "{k}:lockkeeper:queue"}), "0");
}

}  // namespace
}  // namespace lockkeeper::test
