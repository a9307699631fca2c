#pragma once

#include <iosfwd>
#include <string>

namespace lockkeeper::poco {

/// All settings with what may be written, their defaults and meaning, for a terminal.
void printSettings(std::ostream& out);

/// docs/configuration.md.
std::string settingsPage();

}  // namespace lockkeeper::poco
