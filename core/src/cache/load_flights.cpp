#include "cache/load_flights.h"

#include <utility>

namespace lockkeeper::detail {

LoadFlights::Seat LoadFlights::board(std::string_view key) {
  const std::lock_guard held(mutex_);
  const auto found = flights_.find(key);
  if (found != flights_.end()) return {found->second, false};
  auto flight = std::make_shared<LoadFlight>();
  flights_.emplace(key, flight);
  return {std::move(flight), true};
}

void LoadFlights::land(std::string_view key, const std::shared_ptr<LoadFlight>& flight,
                       std::optional<std::string> value, std::exception_ptr failure) {
  const std::lock_guard held(mutex_);
  flight->value = std::move(value);
  flight->failure = std::move(failure);
  flight->done = true;
  flight->landed.notify_all();
  // After close() the key's flight may be another one.
  const auto found = flights_.find(key);
  if (found != flights_.end() && found->second == flight) flights_.erase(found);
}

bool LoadFlights::await(LoadFlight& flight, Instant until) {
  std::unique_lock held(mutex_);
  while (!flight.done && clock_->now() < until) clock_->wait(held, flight.landed, until);
  return flight.done;
}

void LoadFlights::close(std::string_view key) {
  const std::lock_guard held(mutex_);
  const auto found = flights_.find(key);
  if (found != flights_.end()) flights_.erase(found);
}

}  // namespace lockkeeper::detail
