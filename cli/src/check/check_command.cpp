#include <fstream>
#include <iostream>

#include "check/history_file.h"
#include "commands.h"
#include "exit_codes.h"
#include "inspect/json.h"
#include "lockkeeper/error.h"
#include "lockkeeper/testing/history/check.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

namespace history = testing::history;

HistoryFile open(const std::string& path) {
  if (path == "-") return readHistory(std::cin);
  std::ifstream in(path);
  if (!in || in.peek() == std::ifstream::traits_type::eof())
    throw UsageError("no history can be read from " + quoted(path));
  return readHistory(in);
}

std::string counted(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void printForPeople(const HistoryFile& file, const history::Report& report) {
  for (const history::Violation& each : report.violations()) {
    std::cout << toString(each.rule) << ", line " << each.line;
    if (each.otherLine != 0) std::cout << " and line " << each.otherLine;
    std::cout << ": " << oneLine(each.text) << "\n";
  }
  if (report.count() > report.violations().size())
    std::cout << "and " << report.count() - report.violations().size() << " more\n";
  std::cout << counted(file.lines, "line", "lines") << ", "
            << counted(file.history->processCount(), "process", "processes") << ", "
            << counted(file.history->calls().size(), "call", "calls") << ": "
            << counted(report.count(), "violation", "violations") << "\n";
  if (!file.history->hasEnd()) std::cout << "leaks were not checked: the history has no end\n";
}

void printForPrograms(const HistoryFile& file, const history::Report& report) {
  for (const history::Violation& each : report.violations()) {
    Poco::JSON::Object object = newObject();
    object.set("rule", toString(each.rule));
    object.set("line", each.line);
    object.set("otherLine", each.otherLine != 0 ? Poco::Dynamic::Var(each.otherLine) : Poco::Dynamic::Var());
    setText(object, "text", each.text);
    printLine(object);
  }
  Poco::JSON::Object object = newObject();
  object.set("lines", file.lines);
  object.set("processes", file.history->processCount());
  object.set("calls", file.history->calls().size());
  object.set("violations", report.count());
  object.set("leaksChecked", file.history->hasEnd());
  printLine(object);
}

}  // namespace

int checkHistory(const CommandLine& line) {
  const HistoryFile file = open(line.operandsOf(1, 1, "one FILE").front());
  const history::Report report = history::check(*file.history);
  if (line.has("json")) {
    printForPrograms(file, report);
  } else {
    printForPeople(file, report);
  }
  return report.count() == 0 ? exitOk : exitBusy;
}

}  // namespace lockkeeper::cli
