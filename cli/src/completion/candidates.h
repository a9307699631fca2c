#pragma once

#include <span>
#include <string>
#include <vector>

#include "commands.h"

namespace lockkeeper::cli {

/// What may stand in the place of the last of `words`, which are a command line after the program's name: a
/// line each, with a tabulator and its description where it has one. ":files" stands for names of files,
/// ":command" for another program's command line. The shells' completion scripts ask for them.
std::vector<std::string> candidates(std::span<const Command> commands, std::span<const std::string> words);

}  // namespace lockkeeper::cli
