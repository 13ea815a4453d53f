// NodeProcess: a node of the bank as its starter sees it: a process that can be killed, and started again where it was.
//
//   NodeProcess storage({.program = "/proc/self/exe", .name = "storage", .dir = dir});
//   FRAKTOR_RETURN_IF_ERROR(storage.Start());
//   storage.Kill();                                             // kill -9
//   FRAKTOR_RETURN_IF_ERROR(storage.Start());                   // at the same port
//   FRAKTOR_RETURN_IF_ERROR(storage.End());
//
// It ends with the object: by the end of its input if End was called, or else by force.
//
// Thread safety: one thread at a time.
#ifndef FRAKTOR_EXAMPLES_BANK_NODE_PROCESS_H_
#define FRAKTOR_EXAMPLES_BANK_NODE_PROCESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/remote/grpc/child_process.h"

namespace bank {

struct NodePlan {
  std::string program = {};
  std::string name = {};
  std::string dir = {};
  // Where the storage node is; empty for that node itself.
  std::string storage = {};
};

class NodeProcess {
 public:
  explicit NodeProcess(NodePlan plan) : plan_(std::move(plan)) {}
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;

  // Waits until it is ready. Unavailable, with the name of its log, if it ends before.
  absl::Status Start();
  void Kill();
  // Ends its input, so that it ends in order, and waits for that.
  absl::Status End();

  bool is_running() const { return process_.has_value(); }
  const std::string& name() const { return plan_.name; }
  // "localhost:2550"; after the first start.
  std::string authority() const;

 private:
  const NodePlan plan_;
  uint16_t port_ = 0;
  std::optional<fraktor::ChildProcess> process_;
};

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_NODE_PROCESS_H_
