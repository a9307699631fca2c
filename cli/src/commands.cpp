#include "commands.h"

#include <Poco/Util/Option.h>

#include <iostream>

#include "completion/candidates.h"
#include "completion_scripts.h"
#include "exit_codes.h"
#include "lockkeeper/error.h"
#include "migrate/migrate.h"

namespace lockkeeper::cli {
namespace {

using Poco::Util::Option;
using Poco::Util::OptionSet;

OptionSet helpOnly() {
  OptionSet options;
  options.addOption(Option("help", "h", "explain this command"));
  return options;
}

OptionSet storeOptions() {
  OptionSet options = helpOnly();
  options.addOption(
      Option("store", "s",
             "the store, such as redis://host:6379/0. Everybody on the machine can read a command "
             "line: passwords belong in ${NAME} (an environment variable), in passwordFile=PATH, or "
             "in the file of --config")
          .argument("URI"));
  options.addOption(
      Option(
          "config", "c",
          "the application's .properties, .json or .xml file, for its settings lockkeeper.*; options of the "
          "command line win. With --store, only that store is used, even if the file configures a migration "
          "(for migrate status and advance, --store is the new store)")
          .argument("FILE"));
  options.addOption(
      Option("namespace", "n", "a prefix of all keys, for applications that share a store").argument("NAME"));
  return options;
}

void addJson(OptionSet& options) {
  options.addOption(Option("json", "j", "print JSON for programs, one object per line"));
}

OptionSet lookOptions() {
  OptionSet options = storeOptions();
  addJson(options);
  return options;
}

OptionSet watchOptions() {
  OptionSet options = lookOptions();
  options.addOption(Option("interval", "i", "how often to ask the store (1s)").argument("TIME"));
  options.addOption(
      Option("sort", "o", "by waiting (the default), key, owner, age, remaining or turns").argument("ORDER"));
  options.addOption(
      Option("filter", "f", "show only keys and owners that have TEXT in them").argument("TEXT"));
  return options;
}

OptionSet serveOptions() {
  OptionSet options = storeOptions();
  options.addOption(
      Option("listen", "l", "a loopback address and a port (127.0.0.1:8470); port 0 takes a free one")
          .argument("ADDRESS"));
  options.addOption(
      Option("interval", "i", "how often to ask the store while somebody watches (1s)").argument("TIME"));
  options.addOption(
      Option("host", "H", "the host name of a proxy in front of it, without a port").argument("NAME"));
  options.addOption(Option("break-password", "b",
                           "a file whose first line is a password of at least 16 characters: with it, "
                           "operators may break locks on the page; without this option, nobody may")
                        .argument("FILE"));
  return options;
}

OptionSet runOptions() {
  OptionSet options = storeOptions();
  options.addOption(
      Option("ttl", "t", "how long the key stays locked if this machine dies (30s)").argument("TIME"));
  options.addOption(
      Option("wait", "w", "how long to wait for a busy key or an unreachable store (0s)").argument("TIME"));
  options.addOption(
      Option("permits", "p",
             "let up to N run at a time, instead of one; all users of KEY must name the same number")
          .argument("N"));
  options.addOption(
      Option("grace", "g",
             "how long the command has to end by itself when the lock is lost, between SIGTERM and "
             "SIGKILL (5s)")
          .argument("TIME"));
  return options;
}

OptionSet breakOptions() {
  OptionSet options = lookOptions();
  options.addOption(Option("yes", "y", "do not ask; required without a terminal"));
  return options;
}

OptionSet limitOptions() {
  OptionSet options = lookOptions();
  options.addOption(Option("rate", "r", "how much per time: 2/s, 100/min, 1/day, 5/30s").argument("RATE"));
  options.addOption(Option("burst", "b", "how much a full bucket holds (the rate's number)").argument("N"));
  options.addOption(
      Option("kind", "k",
             "token-bucket (the default), leaky-meter, leaky-queue, sliding-window or fixed-window")
          .argument("KIND"));
  options.addOption(
      Option("name", "m",
             "the limit's name (limit): limits of different names are counted separately; with --config, the "
             "limit whose settings are lockkeeper.limits.NAME.*")
          .argument("NAME"));
  options.addOption(Option("cost", "", "how much this call takes (1)").argument("N"));
  options.addOption(Option("wait", "w", "how long to wait to be allowed (0s)").argument("TIME"));
  options.addOption(Option("peek", "p", "check, but take nothing"));
  options.addOption(Option("reset", "", "forget what KEY has used"));
  return options;
}

OptionSet migrateOptions() {
  OptionSet options = lookOptions();
  options.addOption(Option("dry-run", "", "say what would be done, without doing it"));
  return options;
}

OptionSet checkOptions() {
  OptionSet options = helpOnly();
  addJson(options);
  return options;
}

int printCompletion(const CommandLine& line) {
  const std::string shell = line.operandsOf(1, 1, "the name of a shell").front();
  if (shell == "bash") {
    std::cout << bashCompletion;
  } else if (shell == "fish") {
    std::cout << fishCompletion;
  } else if (shell == "zsh") {
    std::cout << zshCompletion;
  } else if (shell == "candidates") {  // the scripts ask for them
    std::vector<std::string> words;
    for (std::string word; std::getline(std::cin, word);) words.push_back(word);
    for (const std::string& each : candidates(commands(), words)) std::cout << each << "\n";
  } else {
    throw UsageError("no completion for " + quoted(shell) + ": there is one for bash, fish and zsh");
  }
  return exitOk;
}

constexpr const char* storeNote =
    "\nLOCKKEEPER_STORE in the environment can also name the store.\n"
    "Exit: 0 done, 64 wrong usage, 69 store not reachable, 70 internal error, or output that could not be "
    "written, 78 wrong configuration.";

const Command all[] = {
    {"run", "run a command while holding a lock", "[options] KEY -- COMMAND [ARG...]",
     "Takes the lock KEY (with --permits, one of N permits of KEY), runs COMMAND, renews the lock as long "
     "as COMMAND runs, and releases it.\n"
     "COMMAND finds the key in LOCKKEEPER_KEY and the fence in LOCKKEEPER_FENCE (empty if the store has "
     "none): a number that grows with each grant, so that resources can refuse late writers. It inherits "
     "LOCKKEEPER_STORE with any password in it; passwordFile=PATH keeps a password out of the environment. "
     "When the lock is lost, COMMAND and its whole process group get SIGTERM, and SIGKILL after the grace "
     "time. "
     "Signals are passed on to COMMAND. A COMMAND that becomes another user, as sudo does, gets none, "
     "and lockkeeper waits until it has ended: write sudo lockkeeper run ... instead of lockkeeper run ... "
     "-- sudo. Ctrl-Z also stops lockkeeper, "
     "and then the lock is not renewed: after fg, COMMAND continues only if the lock is still held. "
     "Ctrl-Z does nothing where no shell could resume the job, for example under ssh -t HOST lockkeeper "
     "run. If lockkeeper itself is killed (kill -9, out of memory), COMMAND gets SIGTERM, but processes "
     "that it has started may work on after the lock's lease: let COMMAND end them then, or run "
     "lockkeeper in a unit or container that ends as a whole. A lockkeeper run inside COMMAND that asks "
     "for the same lock gets it at once, and the outer one releases it. That does not work if a program "
     "in between, such as sudo, closes the descriptors that LOCKKEEPER_OWNER_FD names.",
     "\nTIME is a number and a unit: 250ms, 30s, 5m, 1h.\n\n"
     "Examples:\n"
     "  lockkeeper run --store redis://127.0.0.1 --wait 10s nightly -- ./report --all\n"
     "  lockkeeper run --config shop.properties --permits 3 --wait 1h export -- ./export\n"
     "  lockkeeper run --config shop.properties --ttl 1m reindex -- sh -c 'work \"$LOCKKEEPER_FENCE\"'\n\n"
     "Exit: COMMAND's own code, or\n"
     "  64   wrong usage\n"
     "  69   the store was not reached\n"
     "  70   internal error\n"
     "  75   the key stayed busy until the time of --wait was over: COMMAND was not started\n"
     "  76   the lock was lost while COMMAND ran\n"
     "  78   wrong configuration\n"
     "  126  COMMAND could not be started\n"
     "  127  COMMAND was not found\n"
     "  128+n  signal n ended COMMAND",
     runOptions, runUnderLock},
    {"show", "show who holds a key", "[options] KEY",
     "Shows who holds KEY, for how long if nobody renews it, with which fence, and which share of it if "
     "KEY is shared. If the store consists of several nodes (redlock), it also shows what each of them "
     "says. If the store has a queue that can be listed (Redis, PostgreSQL), it shows who waits for KEY, "
     "the next one first, since when, and for which share of it. It shows one waiter per process. Waiters "
     "that poll are not in the queue.",
     storeNote, lookOptions, showKey},
    {"list", "list the keys that are held", "[options] [PREFIX]",
     "Lists the held keys that start with PREFIX, and who holds them. In Redis, locks of clients other "
     "than lockkeeper look like any other string and are not listed. WAITING is the number of waiters for "
     "a key.",
     storeNote, lookOptions, listKeys},
    {"watch", "show live which keys are held", "[options] [PREFIX]",
     "Lists the held keys that start with PREFIX again and again, until you press q: who holds them, for "
     "how long (> means longer: it was already held when watch started), how many wait for them, who has "
     "waited longest and for how long, how long the lease lasts if nobody renews it, the fence, and how "
     "often the key changed hands while you watched. Below, it lists the leases that ran out in the last "
     "10 minutes because nobody renewed them. Keys that somebody waits for come first, then those that "
     "have been held longest. s changes the order, / sets a filter. Without a terminal, it prints a line "
     "for each change: held (at the start), taken, passed (to another holder), freed, or failed (the "
     "store could not be asked). With --json, \"expired\": true at passed or freed means that the lease "
     "before it was not released, but ran out. It asks the store as often as --interval says, as lockkeeper "
     "list does: if a Redis "
     "has many other keys, choose a longer interval.",
     "\nTIME is a number and a unit, 100ms to 1h. --sort and --filter are for a terminal.\n\n"
     "Examples:\n"
     "  lockkeeper watch --store redis://127.0.0.1 order: --sort turns\n"
     "  lockkeeper watch --config shop.properties --json | tee locks.jsonl\n\n"
     "Exit: 0 you pressed q, 64 wrong usage, 69 store not reachable at the first request, 70 internal "
     "error, or output that could not be written, 78 wrong configuration, 128+n signal n ended it.",
     watchOptions, watchKeys},
    {"serve", "show live in a browser which keys are held", "[options] [PREFIX]",
     "Serves a web page that shows live which keys that start with PREFIX are held: who holds them, since "
     "when, who waits for them and how long, and which leases ran out in the last 10 minutes. It prints the "
     "page's address and "
     "runs until a signal ends it. Everybody who reaches the address may read the page: for other "
     "machines, put a proxy with TLS and a login in front of it. The store is asked only while somebody "
     "watches. Attempts to break a lock are written to standard error.",
     "\nTIME is a number and a unit, 100ms to 1h.\n\n"
     "Examples:\n"
     "  lockkeeper serve --store redis://127.0.0.1 order:\n"
     "  lockkeeper serve --config shop.properties --listen 127.0.0.1:9000 --break-password "
     "/etc/locks.password\n\n"
     "Exit: 64 wrong usage, 70 internal error, 78 wrong configuration, 128+n signal n ended it.",
     serveOptions, serveConsole},
    {"break", "take a lock from its holder", "[options] KEY",
     "Shows who holds KEY, asks for confirmation, and frees it if that holder still has it. If KEY is "
     "shared, it frees all shares that were shown. The holder finds out at its next renewal, with "
     "PostgreSQL within a second, and continues to work until then, so two may be at work for a while: make "
     "sure first that the holder is gone.",
     "\nLOCKKEEPER_STORE in the environment can also name the store.\n"
     "Exit: 0 done or nothing to do, 64 wrong usage, 69 store not reachable, 70 internal error, or output "
     "that could not be written, 75 you said no or somebody else holds it now, 78 wrong configuration.",
     breakOptions, breakKey},
    {"limit", "limit how often something happens", "[options] KEY",
     "Charges the limit of KEY and says whether it is allowed. All programs that use the same store, "
     "namespace, name and key share the limit.",
     "\nExamples:\n"
     "  lockkeeper limit --store redis://127.0.0.1 --rate 2/s --burst 10 sms:+49170123 && ./send\n"
     "  lockkeeper limit --config shop.properties --name sms --wait 10s +49170123\n\n"
     "Exit: 0 allowed (or, with --peek, it would be), 64 wrong usage, 69 store not reachable, 70 internal "
     "error, or output that could not be written, 75 refused, 78 wrong configuration.",
     limitOptions, limitKey},
    {"migrate", "move a live fleet to another store", "audit [PREFIX] | status | advance RULE [options]",
     "Moves locks from the store in lockkeeper.migration.from to lockkeeper.store while the processes that "
     "use them run: docs/migrating.md describes all steps. audit goes through the keys of a "
     "redis+legacy:// store, with SCAN and without writing, and prints what each holds: a lock that is "
     "held; one that has expired; a phantom, which has expired and has no TTL; a foreign value, which is "
     "never taken over; or a value with a token, which is ours. status says who takes part, in which "
     "phase, and what blocks the next step. advance writes a rule for all processes, such as 'order:* = "
     "modern' or '25% = both'. Phases are legacy (the old store), both and modern (the new store); keys go "
     "from legacy to modern, and back, only through both.",
     "\nExamples:\n"
     "  lockkeeper migrate audit --store 'redis+legacy://127.0.0.1:6379/0?keyPrefix=lock:'\n"
     "  lockkeeper migrate status --config shop.properties\n"
     "  lockkeeper migrate advance '25% = both' --dry-run --config shop.properties\n\n"
     "Exit: 0 done or nothing to do, 64 wrong usage or a rule that skips a phase, 69 store not reachable, "
     "70 internal error, or output that could not be written, 75 somebody else has changed the rules "
     "meanwhile, 78 wrong configuration.",
     migrateOptions, migrate},
    {"check", "check a history of locks, values and limits", "[options] FILE",
     "Reads a history from FILE (- for standard input): a line of JSON for each thing that processes did "
     "with locks, guarded values and limits, and for what came of it. docs/checking-histories.md describes "
     "the lines and how to record them. Says where the history breaks a rule: two holders at a time, a "
     "fence that does not increase, a waiter that was passed over, a lost update, more of a limit than is "
     "allowed, a call without an answer in time, or a key that is held in the end and nobody has. It shows "
     "up to 20 violations of each rule. It asks no store.",
     "\nExamples:\n"
     "  lockkeeper check history.jsonl\n"
     "  lockkeeper check --json - <history.jsonl\n\n"
     "Exit: 0 no rule is broken, 64 wrong usage or no history, 70 internal error, or output that could "
     "not be written, 75 a rule is broken.",
     checkOptions, checkHistory},
    {"completion", "print the completion script of a shell", "bash | fish | zsh",
     "Prints a script that completes lockkeeper's command lines.",
     "\nExamples:\n"
     "  source <(lockkeeper completion bash)     # in ~/.bashrc\n"
     "  lockkeeper completion fish | source      # in ~/.config/fish/config.fish\n"
     "  source <(lockkeeper completion zsh)      # in ~/.zshrc, after compinit\n\n"
     "Exit: 0 done, 64 wrong usage, 70 internal error, or output that could not be written.",
     helpOnly, printCompletion},
};

}  // namespace

std::span<const Command> commands() { return all; }

}  // namespace lockkeeper::cli
