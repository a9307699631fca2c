#include "lockkeeper/store_registry.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/edit_distance.h"

namespace lockkeeper {

namespace {

template <class Factories, class Factory>
void addTo(Factories& factories, std::string scheme, Factory factory) {
  if (factories.contains(scheme)) {
    throw std::invalid_argument("the scheme " + quoted(scheme) + " is registered already");
  }
  factories[std::move(scheme)] = std::move(factory);
}

/// A question whether the one that is spelt almost like `scheme` was meant or, if there is none, those of
/// that store, whose names have more after a `+`; empty if there is none of these either.
template <class Factories>
std::string meant(const Factories& factories, const std::string& scheme) {
  constexpr std::size_t typos = 2;
  const auto distance = [&](const auto& entry) { return editDistance(scheme, entry.first); };
  const auto nearest = std::ranges::min_element(factories, {}, distance);
  if (nearest != factories.end() && distance(*nearest) <= typos)
    return "; did you mean " + nearest->first + "?";
  std::string ofThatStore;
  for (const auto& entry : factories) {
    const std::size_t plus = entry.first.find('+');
    if (plus == std::string::npos || editDistance(scheme, entry.first.substr(0, plus)) > typos) continue;
    ofThatStore += (ofThatStore.empty() ? "" : " or ") + entry.first;
  }
  return ofThatStore.empty() ? "" : "; did you mean " + ofThatStore + "?";
}

/// Throws ConfigError unless there is one; `what` would open the URI.
template <class Factories>
const auto& factoryFor(const Factories& factories, const std::string& scheme, const char* what) {
  const auto found = factories.find(scheme);
  if (found != factories.end()) return found->second;
  std::string known;
  for (const auto& entry : factories) known += (known.empty() ? "" : ", ") + entry.first;
  throw ConfigError(std::string("no ") + what + " is registered for the scheme " + quoted(scheme) +
                    ": this program knows " + (known.empty() ? "none" : known) + meant(factories, scheme));
}

}  // namespace

void StoreRegistry::add(std::string scheme, Factory factory) {
  addTo(stores_, std::move(scheme),
        [made = std::move(factory)](const StoreUri& uri, const Environment& environment,
                                    const StoreRegistry&) { return made(uri, environment); });
}

void StoreRegistry::addComposition(std::string scheme, Composition composition) {
  addTo(stores_, std::move(scheme), std::move(composition));
}

void StoreRegistry::addFences(std::string scheme, FenceFactory factory) {
  addTo(fences_, std::move(scheme), std::move(factory));
}

void StoreRegistry::addValues(std::string scheme, ValueFactory factory) {
  addTo(values_, std::move(scheme), std::move(factory));
}

std::shared_ptr<LockDriver> StoreRegistry::open(std::string_view uri, const Environment& environment) const {
  const StoreUri parsed = StoreUri::parse(uri);
  return factoryFor(stores_, parsed.scheme(), "driver")(parsed, environment, *this);
}

std::shared_ptr<FenceSource> StoreRegistry::openFences(std::string_view uri,
                                                       const Environment& environment) const {
  const StoreUri parsed = StoreUri::parse(uri);
  return factoryFor(fences_, parsed.scheme(), "source of fences")(parsed, environment);
}

std::shared_ptr<RateDriver> StoreRegistry::openRates(std::string_view uri,
                                                     const Environment& environment) const {
  if (auto rates = capability<RateDriver>(open(uri, environment))) return rates;
  throw ConfigError("the store " + StoreUri::parse(uri).display() + " keeps no rate limits");
}

std::shared_ptr<ValueStore> StoreRegistry::openValues(std::string_view uri,
                                                      const Environment& environment) const {
  const StoreUri parsed = StoreUri::parse(uri);
  return factoryFor(values_, parsed.scheme(), "store of values")(parsed, environment);
}

}  // namespace lockkeeper
