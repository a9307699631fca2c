#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "inspect/screen.h"
#include "inspect/watched.h"

namespace lockkeeper::cli {

/// The order of the rows with this name; empty: what is waited for first, and of others what is held for
/// longest. Throws UsageError for a name that none has.
std::size_t orderNamed(const std::optional<std::string>& name);

/// A table that fills the terminal, and the keys of the keyboard that change it.
class LiveTable final : public Display {
 public:
  LiveTable(std::size_t order, std::string filter) : order_(order), filter_(std::move(filter)) {}

  void changed(const Seen& seen) override;
  /// What was seen last stays.
  void failed(const std::string& why) override;

  /// What was pressed since. False: quit.
  bool handleKeys();
  /// For as long as this process is stopped, the terminal is its shell's.
  void stop();
  void draw() const;

 private:
  void type(char key);
  std::vector<std::string> lossLines() const;
  std::string status(std::size_t count) const;

  std::optional<Screen> screen_{std::in_place};
  std::size_t order_;
  std::string filter_;
  bool typing_ = false;
  Seen seen_;
  std::string fault_;
};

}  // namespace lockkeeper::cli
