#pragma once

#include "lockkeeper/testing/history/history.h"
#include "lockkeeper/testing/history/report.h"
#include "lockkeeper/testing/history/rules/ends.h"
#include "lockkeeper/testing/history/rules/fences.h"
#include "lockkeeper/testing/history/rules/holders.h"
#include "lockkeeper/testing/history/rules/limits.h"
#include "lockkeeper/testing/history/rules/order.h"
#include "lockkeeper/testing/history/rules/updates.h"

namespace lockkeeper::testing::history {

/// Where a history breaks which rule, in O(n log n) for n records. What it does not know for certain, it
/// takes for right: a call whose outcome is unknown may have had an effect or none. Throws
/// std::invalid_argument that names the line for values that cannot be checked.
inline Report check(const History& history) {
  Report report;
  checkHolders(history, report);
  checkFences(history, report);
  checkOrder(history, report);
  checkUpdates(history, report);
  checkLimits(history, report);
  checkAnswers(history, report);
  checkLeaks(history, report);
  return report;
}

}  // namespace lockkeeper::testing::history
