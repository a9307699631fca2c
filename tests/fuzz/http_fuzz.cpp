// Targets, fields, bodies, routes and sources of keys of arbitrary bytes, as a filter takes them from a
// request and from the configuration.

#include <Poco/Exception.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "fake_request.h"
#include "fuzz_target.h"
#include "http/framing.h"
#include "http/route/client_address.h"
#include "http/route/key_source.h"
#include "http/route/normal_form.h"
#include "http/route/request_path.h"
#include "http/route/route_pattern.h"

namespace {

using namespace lockkeeper::poco;

const UserOf userOf = [](const Poco::Net::HTTPServerRequest& request) { return request.get("X-User", ""); };

void checkKey(const KeySource& source, const RequestFacts& facts) {
  source.isClear(facts);
  source.clientIn(facts);
  const std::string key = source.keyFor(facts);
  require(!key.empty() && key.size() <= 64, "a key has 1 to 64 bytes");
  require(source.partFor(facts, '+').find('+') == std::string::npos, "a part of a key has no mark in it");
}

void checkRequest(const std::string& text) {
  FakeRequest request("POST", text);
  for (const char* name :
       {"X-Forwarded-For", "Transfer-Encoding", "Content-Length", "Host", "Cookie", "X-User"}) {
    if (text.find('\n') == std::string::npos) request.set(name, text);
  }
  hasClearFraming(request);
  hostOf(request);
  const auto path = pathSegments(text);
  for (const std::string& segment : path.value_or(std::vector<std::string>())) {
    require(!segment.empty() && segment != "." && segment != "..", "no segment leads elsewhere");
    require(segment.find_first_of("/\\") == std::string::npos, "no segment is two");
    require(std::ranges::none_of(segment, [](unsigned char each) { return each < ' ' || each == 0x7f; }),
            "no segment has control characters");
  }
  ClientOptions options;
  options.trustedProxies = "192.0.2.0/24";
  const ClientAddress address(options);
  require(!address.of(request).empty(), "a client has an address");
  RequestFacts facts{request, path ? *path : std::vector<std::string>(), address, userOf};
  facts.json = parseJson(text);
  const RoutePattern pattern = RoutePattern::parse("route", "POST /orders/{id}/*");
  if (!pattern.matches("POST", facts.path)) return;
  for (const char* source : {"all", "address", "user", "header X-User", "cookie id", "query id", "json id",
                             "path id", "json id | e164"}) {
    checkKey(KeySource::parse("key", source, pattern, userOf), facts);
  }
}

template <class Read>
void readOrRefuse(Read read) {
  try {
    read();
  } catch (const std::invalid_argument& fault) {
    requireOneLine(fault);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  checkRequest(text);
  checkRequest("/orders/" + text);
  readOrRefuse([&] { RoutePattern::parse("route", text).loneliest(2); });
  readOrRefuse([&] { KeySource::parse("key", text, RoutePattern::parse("route", "GET /{id}"), userOf); });
  readOrRefuse([&] {
    const NormalForm form = NormalForm::parse("form", text);
    if (const auto once = form.of(text)) require(form.of(*once) == once, "a normal spelling stays as it is");
  });
  const auto number = NormalForm::parse("form", "trim | e164").of(text);
  if (number) require(number->size() <= 16 && number->front() == '+', "a telephone number is short");
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  return {"/orders/7/items?id=49170&x=%20",
          "/orders/%2e%2e/admin",
          "http://host:80/orders/7",
          "7/items",
          "%2F..%5c/./%00",
          "POST /orders/{id}/*",
          "* /api/*",
          "header X-Tenant | lower | plain",
          "json id | trim | e164",
          " 0049 170 1234567",
          "gzip, chunked",
          "192.0.2.7, 198.51.100.3, [2001:db8::1]:443",
          R"({"id":49170,"id":"x","list":[1,2.5,{"a":null}]})"};
}
