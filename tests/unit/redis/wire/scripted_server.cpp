#include "scripted_server.h"

#include <Poco/Exception.h>
#include <Poco/Net/SocketAddress.h>
#include <sys/socket.h>

#include <stdexcept>

namespace lockkeeper::redis {

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::vector<std::string> ScriptedServer::Peer::command() {
  Reply reply;
  while (!reader_.next(reply)) {
    const std::span<char> room = reader_.room();
    const int count = socket_.receiveBytes(room.data(), static_cast<int>(room.size()));
    if (count <= 0) throw std::runtime_error("the client has closed the connection");
    reader_.filled(static_cast<std::size_t>(count));
  }
  std::vector<std::string> words;
  for (const Reply& word : reply.items) words.push_back(word.text);
  return words;
}

void ScriptedServer::Peer::say(const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    sent += static_cast<std::size_t>(
        socket_.sendBytes(bytes.data() + sent, static_cast<int>(bytes.size() - sent), MSG_NOSIGNAL));
  }
}

void ScriptedServer::Peer::logIn(const std::string& info) {
  while (true) {
    const std::vector<std::string> words = command();
    if (words[0] == "INFO") {
      say(bulk(info));
    } else if (words[0] == "CONFIG") {
      say("*0\r\n");
      return;
    } else {
      say("+OK\r\n");
    }
  }
}

void ScriptedServer::Peer::close() { ::shutdown(socket_.impl()->sockfd(), SHUT_RDWR); }

ScriptedServer::ScriptedServer(Serve serve, std::uint16_t port)
    : serve_(std::move(serve)),
      listener_(Poco::Net::SocketAddress("127.0.0.1", port)),
      accepting_([this] { run(); }) {}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  Poco::Net::StreamSocket wakeUp;
  wakeUp.connect(listener_.address());
  accepting_.join();
  const std::lock_guard guard(mutex_);
  for (Poco::Net::StreamSocket& socket : sockets_) ::shutdown(socket.impl()->sockfd(), SHUT_RDWR);
}

void ScriptedServer::run() {
  while (true) {
    Poco::Net::StreamSocket socket = listener_.acceptConnection();
    if (stopping_) return;
    socket.setNoDelay(true);
    const int number = ++connections_;
    const std::lock_guard guard(mutex_);
    sockets_.push_back(socket);
    serving_.emplace_back([this, socket, number]() mutable {
      try {
        Peer peer(socket);
        serve_(peer, number);
      } catch (const std::exception&) {
        // The client has gone, or the test is over.
      }
      ::shutdown(socket.impl()->sockfd(), SHUT_RDWR);
    });
  }
}

}  // namespace lockkeeper::redis
