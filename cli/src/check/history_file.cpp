#include "check/history_file.h"

#include <Poco/JSON/Handler.h>
#include <Poco/JSON/Parser.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "lockkeeper/error.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/testing/history/json_line.h"

namespace lockkeeper::cli {
namespace {

using namespace testing::history;

constexpr std::size_t longestLine = 65'536;

enum Field : std::size_t {
  historyField,
  fencesField,
  fifoField,
  policyField,
  rateField,
  burstField,
  kindField,
  timeField,
  phaseField,
  processField,
  idField,
  opField,
  keyField,
  permitsField,
  limitField,
  grantField,
  unitsField,
  withinField,
  fenceField,
  untilField,
  valueField,
  atField,
  fieldCount
};
constexpr std::array<std::string_view, fieldCount> fieldNames{
    "history", "fences", "fifo",    "policy", "rate",  "burst", "kind",   "time",  "phase", "process", "id",
    "op",      "key",    "permits", "limit",  "grant", "units", "within", "fence", "until", "value",   "at"};
using Fields = std::bitset<fieldCount>;

constexpr Fields fields(std::initializer_list<Field> all) {
  unsigned long long bits = 0;
  for (const Field each : all) bits |= 1ULL << each;
  return Fields(bits);
}

/// What a line of some sort must have, and what it may have.
struct Shape {
  Fields needed;
  Fields allowed;
};

const Shape headerShape{fields({historyField}), fields({fencesField, fifoField})};
const Shape policyShape{fields({policyField, rateField}), fields({burstField, kindField})};
const Shape endShape{fields({timeField, phaseField}), fields({keyField})};
const Shape processShape{fields({timeField, phaseField, processField}), {}};
const Shape callShape{fields({timeField, phaseField, processField, idField}), {}};
const Shape okShape{callShape.needed, fields({fenceField, untilField, valueField, atField})};
const Shape invokeShape{callShape.needed | fields({opField}), fields({withinField})};

/// In addition, of the invoke of each operation.
const std::array<Shape, operationNames.size()> operationShapes{
    Shape{fields({keyField, kindField}), fields({permitsField, limitField})},
    Shape{fields({grantField}), {}},
    Shape{fields({grantField}), {}},
    Shape{fields({grantField, keyField}), {}},
    Shape{fields({grantField, keyField, valueField}), {}},
    Shape{fields({policyField, keyField}), fields({unitsField})}};

/// A flat object, as the parser finds it.
class Line final : public Poco::JSON::Handler {
 public:
  using Value = std::variant<std::int64_t, std::uint64_t, bool, std::string>;

  bool has(Field field) const { return present_[field]; }

  std::int64_t number(Field field) const {
    if (const auto* const number = std::get_if<std::int64_t>(&values_[field])) return *number;
    refuse(field, "it must be a whole number of at most 2^63 - 1");
  }
  std::optional<std::int64_t> optional(Field field) const {
    return has(field) ? std::optional(number(field)) : std::nullopt;
  }
  std::uint64_t positive(Field field) const {
    if (const auto* const large = std::get_if<std::uint64_t>(&values_[field])) return *large;
    const auto* const number = std::get_if<std::int64_t>(&values_[field]);
    if (number && *number >= 0) return static_cast<std::uint64_t>(*number);
    refuse(field, "it must be a whole number from 0 on");
  }
  std::uint32_t small(Field field) const {
    const std::uint64_t number = positive(field);
    if (number > Share::most) refuse(field, "at most " + std::to_string(Share::most) + " is allowed");
    return static_cast<std::uint32_t>(number);
  }
  const std::string& text(Field field) const {
    if (const auto* const text = std::get_if<std::string>(&values_[field])) return *text;
    refuse(field, "it must be a text");
  }
  bool flag(Field field) const {
    if (!has(field)) return false;
    if (const auto* const flag = std::get_if<bool>(&values_[field])) return *flag;
    refuse(field, "it must be true or false");
  }
  /// A word of `names`, as the enumeration in the same order.
  template <class Enumeration>
  Enumeration word(Field field, std::span<const std::string_view> names) const {
    const auto found = std::ranges::find(names, text(field));
    if (found != names.end()) return static_cast<Enumeration>(found - names.begin());
    std::string all;
    for (const std::string_view each : names) all.append(all.empty() ? "" : ", ").append(each);
    refuse(field, "it must be one of " + all);
  }

  void require(const Shape& shape) const {
    for (std::size_t i = 0; i < fieldCount; ++i) {
      const std::string name(fieldNames[i]);
      if (shape.needed[i] && !present_[i]) throw std::invalid_argument(name + " is missing");
      if (present_[i] && !shape.needed[i] && !shape.allowed[i])
        throw std::invalid_argument(name + " is " + shown(static_cast<Field>(i)) + ": such a line has no " +
                                    name);
    }
  }

  [[noreturn]] void refuse(Field field, const std::string& why) const {
    throw std::invalid_argument(std::string(fieldNames[field]) + " is " + shown(field) + ": " + why);
  }

  // What the parser calls.
  void reset() override {
    present_.reset();
    depth_ = 0;
  }
  void startObject() override {
    if (depth_++ > 0) throw std::invalid_argument("an object inside the line's own");
  }
  void endObject() override {}
  void startArray() override { throw std::invalid_argument("an array, where a line is one object"); }
  void endArray() override {}
  void key(const std::string& name) override {
    const auto found = std::ranges::find(fieldNames, name);
    if (found == fieldNames.end()) throw std::invalid_argument("the field " + quoted(name) + " is unknown");
    current_ = static_cast<Field>(found - fieldNames.begin());
    if (present_[current_]) throw std::invalid_argument("the field " + name + " is there twice");
    present_.set(current_);
  }
  void null() override { throwNotAllowed("null"); }
  void value(int number) override { set(std::int64_t{number}); }
  void value(unsigned number) override { set(std::int64_t{number}); }
  void value(Poco::Int64 number) override { set(std::int64_t{number}); }
  void value(Poco::UInt64 number) override { set(std::uint64_t{number}); }
  void value(const std::string& text) override { set(text); }
  void value(double number) override { throwNotAllowed(std::to_string(number)); }
  void value(bool flag) override { set(flag); }

 private:
  void set(Value value) {
    if (depth_ == 0) throw std::invalid_argument("it is no object");
    values_[current_] = std::move(value);
  }
  [[noreturn]] void throwNotAllowed(const std::string& text) const {
    if (depth_ == 0) throw std::invalid_argument("it is no object");
    throw std::invalid_argument(std::string(fieldNames[current_]) + " is " + text +
                                ": whole numbers, texts, true and false are allowed");
  }
  std::string shown(Field field) const {
    const Value& value = values_[field];
    if (const auto* const text = std::get_if<std::string>(&value)) return quoted(*text);
    if (const auto* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const auto* const number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    return std::to_string(std::get<std::uint64_t>(value));
  }

  std::array<Value, fieldCount> values_;
  Fields present_;
  Field current_ = historyField;
  int depth_ = 0;
};

Record invokeOf(const Line& line, Record record) {
  record.operation = line.word<Operation>(opField, operationNames);
  const Shape& shape = operationShapes[static_cast<std::size_t>(record.operation)];
  line.require({invokeShape.needed | shape.needed, invokeShape.allowed | shape.allowed});
  record.within = line.optional(withinField);
  if (line.has(keyField)) record.key = line.text(keyField);
  if (line.has(grantField)) record.grant = line.positive(grantField);
  record.value = line.optional(valueField);
  if (line.has(unitsField)) record.units = line.number(unitsField);
  if (record.operation == Operation::take) record.policy = line.text(policyField);
  if (record.operation != Operation::lock) return record;
  record.kind = line.word<Kind>(kindField, kindNames);
  for (const Field each : {permitsField, limitField}) {
    if (line.has(each) != (record.kind == Kind::permits))
      throw std::invalid_argument(std::string(fieldNames[each]) + (line.has(each)
                                                                       ? " is there: only permits have it"
                                                                       : " is missing: permits have it"));
  }
  if (record.kind == Kind::permits) record.permits = {line.small(permitsField), line.small(limitField)};
  return record;
}

Record recordOf(const Line& line) {
  Record record;
  if (!line.has(phaseField)) throw std::invalid_argument("phase is missing");
  record.phase = line.word<Phase>(phaseField, phaseNames);
  const bool isOfProcess =
      record.phase == Phase::died || record.phase == Phase::paused || record.phase == Phase::resumed;
  if (record.phase != Phase::invoke)
    line.require(record.phase == Phase::end  ? endShape
                 : isOfProcess               ? processShape
                 : record.phase == Phase::ok ? okShape
                                             : callShape);
  if (line.has(timeField)) record.time = line.number(timeField);
  if (line.has(processField)) record.process = line.text(processField);
  if (line.has(idField)) record.id = line.positive(idField);
  if (record.phase == Phase::invoke) return invokeOf(line, std::move(record));
  if (line.has(keyField)) record.key = line.text(keyField);
  if (line.has(fenceField)) record.fence = line.positive(fenceField);
  record.until = line.optional(untilField);
  record.value = line.optional(valueField);
  record.at = line.optional(atField);
  return record;
}

RatePolicy policyOf(const Line& line) {
  line.require(policyShape);
  std::map<std::string, std::string> settings{{"rate", line.text(rateField)}};
  if (line.has(burstField)) settings["burst"] = std::to_string(line.number(burstField));
  if (line.has(kindField)) settings["kind"] = line.text(kindField);
  return RatePolicy::parse(line.text(policyField), settings);
}

History historyOf(const Line& line) {
  line.require(headerShape);
  if (line.number(historyField) != 1) line.refuse(historyField, "1 is the format that is known");
  return History({.fences = line.flag(fencesField), .fifo = line.flag(fifoField)});
}

}  // namespace

HistoryFile readHistory(std::istream& in) {
  HistoryFile file;
  Poco::SharedPtr<Line> line(new Line);
  Poco::JSON::Parser parser(line);
  std::optional<Record> record;
  for (std::string text; std::getline(in, text);) {
    ++file.lines;
    record.reset();
    try {
      if (text.size() > longestLine)
        throw std::invalid_argument("it has " + std::to_string(text.size()) + " bytes: at most " +
                                    std::to_string(longestLine) + " are allowed");
      line->reset();
      parser.parse(text);
      if (!file.history) {
        file.history.emplace(historyOf(*line));
      } else if (line->has(policyField) && !line->has(phaseField)) {
        file.history->addPolicy(policyOf(*line));
      } else {
        record = recordOf(*line);
      }
    } catch (const Poco::Exception&) {
      throw std::invalid_argument("line " + std::to_string(file.lines) + " is " + quoted(text) +
                                  ": it must be an object of JSON");
    } catch (const std::exception& error) {
      throw std::invalid_argument("line " + std::to_string(file.lines) + ": " + error.what());
    }
    if (record) file.history->add(*record, file.lines);
  }
  if (in.bad()) throw std::runtime_error("the history could not be read to its end");
  if (!file.history) throw std::invalid_argument(R"(line 1 is missing: a history begins with {"history":1})");
  return file;
}

}  // namespace lockkeeper::cli
