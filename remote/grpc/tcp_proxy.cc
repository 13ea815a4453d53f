#include "fraktor/remote/grpc/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <list>
#include <string>
#include <vector>

namespace fraktor::inline v0 {
namespace {

constexpr size_t kMaxWaiting = size_t{1} << 18;

struct Order {
  char what = 0;
  uint16_t to = 0;
};

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// One connection: what comes from one end waits until the other takes it.
struct Pipe {
  int ends[2] = {-1, -1};
  // What goes to each end.
  std::string waiting[2];
  bool is_broken = false;

  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  short Wants(int end) const {
    short events = 0;
    if (waiting[1 - end].size() < kMaxWaiting) events |= POLLIN;
    if (!waiting[end].empty()) events |= POLLOUT;
    return events;
  }
  void Step(int end, short events) {
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
      char bytes[65536];
      const ssize_t count = recv(ends[end], bytes, sizeof(bytes), MSG_DONTWAIT);
      if (count > 0) {
        waiting[1 - end].append(bytes, static_cast<size_t>(count));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        is_broken = true;
      }
    }
    for (const int to : {0, 1}) {
      if (waiting[to].empty()) continue;
      const ssize_t count = send(ends[to], waiting[to].data(), waiting[to].size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count > 0) waiting[to].erase(0, static_cast<size_t>(count));
      if (count < 0 && errno != EAGAIN && errno != EINTR) is_broken = true;
    }
  }
};

}  // namespace

TcpProxy::TcpProxy(uint16_t to) : to_(to) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 64) != 0 || getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders_) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

TcpProxy::~TcpProxy() {
  Tell('e', 0);
  thread_.join();
  close(listener_);
  for (const int end : orders_) close(end);
}

void TcpProxy::Tell(char what, uint16_t to) {
  Order order{.what = what, .to = to};
  if (write(orders_[0], &order, sizeof(order)) != sizeof(order)) std::abort();
  if (read(orders_[0], &order, sizeof(order)) != sizeof(order)) std::abort();
}

void TcpProxy::Run() {
  std::list<Pipe> pipes;
  bool is_cut = false;
  bool is_held = false;
  for (bool goes_on = true; goes_on;) {
    std::vector<pollfd> polled = {{.fd = orders_[1], .events = POLLIN, .revents = 0},
                                  {.fd = listener_, .events = POLLIN, .revents = 0}};
    if (!is_held) {
      for (Pipe& pipe : pipes) {
        for (const int end : {0, 1}) polled.push_back({.fd = pipe.ends[end], .events = pipe.Wants(end), .revents = 0});
      }
    }
    poll(polled.data(), polled.size(), -1);
    size_t next = 2;
    if (!is_held) {
      for (Pipe& pipe : pipes) {
        for (const int end : {0, 1}) {
          const short events = polled[next++].revents;
          if (events != 0) pipe.Step(end, events);
        }
      }
      pipes.remove_if([](const Pipe& pipe) { return pipe.is_broken; });
    }
    if ((polled[1].revents & POLLIN) != 0) {
      const int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted >= 0 && (is_cut || is_held)) {
        close(accepted);
      } else if (accepted >= 0) {
        const int onward = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in address = Loopback(to_);
        if (connect(onward, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
          close(accepted);
          close(onward);
        } else {
          const int yes = 1;
          for (const int end : {accepted, onward}) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
          Pipe& pipe = pipes.emplace_back();
          pipe.ends[0] = accepted;
          pipe.ends[1] = onward;
        }
      }
    }
    if ((polled[0].revents & POLLIN) != 0) {
      Order order;
      if (read(orders_[1], &order, sizeof(order)) != sizeof(order)) std::abort();
      switch (order.what) {
        case 'c':
          is_cut = true;
          pipes.clear();
          break;
        case 'h':
          is_cut = is_held = false;
          break;
        case 's':
          is_held = true;
          break;
        case 't':
          to_ = order.to;
          break;
        default:
          goes_on = false;
      }
      if (write(orders_[1], &order, sizeof(order)) != sizeof(order)) std::abort();
    }
  }
}

}  // namespace fraktor::inline v0
