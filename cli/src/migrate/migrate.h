#pragma once

#include "command_line.h"

namespace lockkeeper::cli {

/// `lockkeeper migrate WORD …`: does what the first operand says.
int migrate(const CommandLine& line);

}  // namespace lockkeeper::cli
