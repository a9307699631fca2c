#pragma once

#include <exception>
#include <functional>
#include <span>

#include "database/database.h"

namespace lockkeeper::inventory {

/// Runs `attempt`, a transaction for all of the calls that finds out what has become of former ones, until
/// that is known. It sets `inDoubt` of a call while a COMMIT may have done what the call wants. Gives each
/// call a failure if it cannot be found out, or does not succeed, by `latest`: OutcomeUnknown to those in
/// doubt.
template <class Call>
void writeUntilKnown(Database& database, std::span<Call* const> calls, Instant latest,
                     const std::function<void()>& attempt) {
  std::exception_ptr doubt;
  try {
    database.run(
        [&] {
          try {
            attempt();
          } catch (const OutcomeUnknown& lost) {
            doubt = std::current_exception();
            throw Database::Undone(lost.what());  // The next attempt finds out.
          }
        },
        latest);
  } catch (...) {
    for (Call* each : calls) each->failure = each->inDoubt && doubt ? doubt : std::current_exception();
  }
}

}  // namespace lockkeeper::inventory
