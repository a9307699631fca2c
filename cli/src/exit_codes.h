#pragma once

namespace lockkeeper::cli {

/// What the command tells its caller, after sysexits.h where that has a word for it.
enum ExitCode {
  exitOk = 0,
  exitUsage = 64,        ///< The command line is wrong.
  exitUnreachable = 69,  ///< The store was not reached, or does not answer like one.
  exitInternal = 70,     ///< Something that should not happen.
  exitBusy = 75,         ///< Somebody else holds the key, a limit refused, or the operator said no.
  exitLost = 76,         ///< The lock was lost while the command ran.
  exitConfig = 78,       ///< A setting, a credential or the store's own set-up is not usable.
  exitCannotRun = 126,   ///< The command was found but not started.
  exitNotFound = 127,    ///< The command was not found.
  exitSignal = 128,      ///< Plus n: signal n ended the command.
};

}  // namespace lockkeeper::cli
