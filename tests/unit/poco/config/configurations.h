#pragma once

#include <Poco/AutoPtr.h>
#include <Poco/Util/JSONConfiguration.h>
#include <Poco/Util/PropertyFileConfiguration.h>
#include <Poco/Util/XMLConfiguration.h>

#include <sstream>
#include <string>

namespace lockkeeper::poco {

using Configuration = Poco::AutoPtr<Poco::Util::AbstractConfiguration>;

/// The text of a file of that kind, read.
template <class Kind>
Configuration parsed(const std::string& text) {
  std::istringstream stream(text);
  return new Kind(stream);
}
inline Configuration properties(const std::string& text) {
  return parsed<Poco::Util::PropertyFileConfiguration>(text);
}
inline Configuration json(const std::string& text) { return parsed<Poco::Util::JSONConfiguration>(text); }
inline Configuration xml(const std::string& text) { return parsed<Poco::Util::XMLConfiguration>(text); }

}  // namespace lockkeeper::poco
