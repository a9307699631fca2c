#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>

#include "lockkeeper/testing/history/history.h"

namespace lockkeeper::cli {

/// A history that was read from its lines of JSON.
struct HistoryFile {
  std::optional<testing::history::History> history;
  std::size_t lines = 0;
};

/// Throws std::invalid_argument that names the line and the value for what is no history.
HistoryFile readHistory(std::istream& in);

}  // namespace lockkeeper::cli
