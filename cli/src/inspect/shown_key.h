#pragma once

#include <string>
#include <string_view>

namespace lockkeeper::cli {

/// The key as it is, so that it can be copied into a command line, unless that would spoil the terminal.
std::string shown(std::string_view key);

}  // namespace lockkeeper::cli
