#pragma once

#include "command_line.h"

namespace lockkeeper::cli {

/// `lockkeeper migrate audit [PREFIX]`: prints the class of each key of a legacy fleet. Reads only.
int auditLegacyKeys(const CommandLine& line);

}  // namespace lockkeeper::cli
