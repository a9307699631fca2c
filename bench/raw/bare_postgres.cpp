#include "bare_postgres.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "limit/rate_texts.h"
#include "lock/lock_texts.h"
#include "lockkeeper/base/hex.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/base/token.h"
#include "lockkeeper/limit/rate_rules.h"
#include "raw_postgres.h"
#include "session/session.h"

namespace lockkeeper::bench {

namespace {

using Statements = std::vector<RawPostgres::Statement>;

constexpr const char* plainTake =
    "UPDATE bare_rows SET version = version + 1, token = '0123456789abcdef', "
    "expires_at = clock_timestamp() + interval '30 s' WHERE id = $1::bytea AND token = '' RETURNING version";
constexpr const char* plainFree =
    "UPDATE bare_rows SET token = '', expires_at = clock_timestamp() "
    "WHERE id = $1::bytea AND token = '0123456789abcdef' RETURNING version";

// As a BYTEA in a text.
std::string keyOf(int thread) { return "\\x" + toHex("bare:" + std::to_string(thread)); }

Way barePostgres(std::string name, std::uint16_t port, std::function<Statements(int thread)> statementsOf,
                 const std::string& settings) {
  return {std::move(name), [port, statements = std::move(statementsOf), settings](int thread) {
            const auto session = std::make_shared<RawPostgres>(port, statements(thread), settings);
            // A new session reads the catalogue, and plans a statement anew for each of its first five runs.
            for (int i = 0; i < 10; ++i) session->run();
            return [session] { session->run(); };
          }};
}

}  // namespace

std::function<void()> plainHandOver(std::uint16_t port) {
  const auto take = std::make_shared<RawPostgres>(port, Statements{{plainTake, {keyOf(0)}}}),
             free = std::make_shared<RawPostgres>(
                 port, Statements{{plainFree + std::string(", pg_notify('bare', '')"), {keyOf(0)}}});
  take->listen("bare");
  take->run();
  return [take, free] {
    free->run();
    take->awaitNotification();
    take->run();
  };
}

Way plainUpdates(std::string name, std::uint16_t port) {
  return barePostgres(
      std::move(name), port,
      [](int thread) {
        return Statements{{plainTake, {keyOf(thread)}}, {plainFree, {keyOf(thread)}}};
      },
      "");
}

Way sameClaims(std::string name, std::uint16_t port) {
  return barePostgres(
      std::move(name), port,
      [texts = postgres::LockTexts("public", "lockkeeper_locks")](int thread) {
        const std::string key = keyOf(thread), token = "\\x" + Token::generate(*systemRandom()).hex();
        return Statements{{texts.claim, {key, token, "bench", "30000", "1", "1", std::nullopt, std::nullopt}},
                          {texts.release, {key, token}}};
      },
      postgres::Session::pins());
}

Way sameCharges(std::string name, std::uint16_t port, const RateLaw& law) {
  const auto list = [](std::int64_t number) { return "{" + std::to_string(number) + "}"; };
  const RateTime room = roomOf({.key = "", .law = &law});
  const std::vector<std::string> rest{list(law.period), list(law.parts), list(room.micros), list(room.parts)};
  return barePostgres(
      std::move(name), port,
      [charge = postgres::RateTexts("public").charge, rest](int thread) {
        return Statements{{charge,
                           {"1000", "{0}", "{\"\\" + keyOf(thread) + "\"}", "{1}", "{1}", rest[0], rest[1],
                            rest[2], rest[3]}}};
      },
      postgres::Session::pins());
}

}  // namespace lockkeeper::bench
