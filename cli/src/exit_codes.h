#pragma once

namespace lockkeeper::cli {

/// Exit codes of the command; those of sysexits.h where it has one.
enum ExitCode {
  exitOk = 0,
  exitUsage = 64,        ///< The command line is wrong.
  exitUnreachable = 69,  ///< The store cannot be reached, or does not answer properly.
  exitInternal = 70,     ///< An internal error, or output that could not be written.
  exitBusy = 75,  ///< Somebody else holds the key, a limit refused, the user answered no, or a history breaks
                  ///< a rule.
  exitLost = 76,  ///< The lock was lost while the command ran.
  exitConfig = 78,      ///< A setting, a password or the configuration of the store is wrong.
  exitCannotRun = 126,  ///< The command was found but not started.
  exitNotFound = 127,   ///< The command was not found.
  exitSignal = 128,     ///< Plus n: signal n ended the command.
};

}  // namespace lockkeeper::cli
