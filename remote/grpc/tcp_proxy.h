// TcpProxy: stands between two nodes in a test, and lets through what comes, or nothing.
//
//   TcpProxy proxy(node_port);                // others are told proxy.port()
//   proxy.Cut();                              // connections break, and new ones are refused
//   proxy.Heal();
//
// Thread safety: any thread.
#ifndef FRAKTOR_REMOTE_GRPC_TCP_PROXY_H_
#define FRAKTOR_REMOTE_GRPC_TCP_PROXY_H_

#include <cstdint>
#include <thread>

namespace fraktor::inline v0 {

class TcpProxy {
 public:
  // To a port of this machine, which may be set later. Listens at a port that it picks.
  explicit TcpProxy(uint16_t to = 0);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  uint16_t port() const { return port_; }
  void SetTarget(uint16_t to) { Tell('t', to); }
  void Cut() { Tell('c', 0); }
  void Heal() { Tell('h', 0); }
  // Connections stay and nothing gets through any more, as with a cable that somebody has pulled out.
  void Hold() { Tell('s', 0); }

 private:
  // Returns when the proxy's thread has done it.
  void Tell(char what, uint16_t to);
  void Run();

  int listener_ = -1;
  uint16_t port_ = 0;
  uint16_t to_ = 0;
  // Orders to the proxy's thread, and its answers.
  int orders_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_TCP_PROXY_H_
