#pragma once

#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/ServerSocket.h>
#include <lockkeeper/poco/lock_console.h>
#include <lockkeeper/poco/lock_services.h>

#include "every_page.h"

namespace pages {

// Of the application.
extern const std::string uri;
extern std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> application;
extern const Poco::Net::ServerSocket socket;
extern const Poco::AutoPtr<Poco::Net::HTTPServerParams> parameters;
extern const lockkeeper::poco::Settings settings;

// Of the block before.
extern lockkeeper::poco::ConsoleOptions options;

}  // namespace pages
