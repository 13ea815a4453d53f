// Transport: how frames get from one node to another. gRPC is one (remote/grpc), the simulated network another
// (remote/sim).
//
//   transport->Start(receiver);                                                  // streams of others come from now on
//   std::shared_ptr<OutboundStream> stream = transport->Connect(peer, Lane::kOrdinary, listener);
//   // listener->OnOpened(): stream->Write(frame); listener->OnWritten(): the next one
//
// A node opens the streams for what it sends, one for each peer and lane, so that lanes do not wait for each other; the
// peer opens its own for what it answers. A stream takes one frame at a time: while it is being written, more gathers,
// and goes out as one frame when the stream is ready. That is all the batching and all the back-pressure there is.
//
// Nothing is promised about frames: they may be lost, come twice, or late. The association copes with it.
//
// What comes in is limited before memory is taken for it (TransportLimits). The next frame of a stream is read when
// OnFrame of the one before has returned, and not while the frames that were read and have not been handled, of all
// streams together, have max_inbound_bytes: so whoever sends too much is slowed down, and nothing piles up.
//
// Callbacks never run inside of a call of the one who gets them. Those of one stream come one after the other; those of
// different streams may come from different threads. They must not block.
//
// Thread safety: any thread may call anything, except Start and Shutdown.
#ifndef FRAKTOR_REMOTE_TRANSPORT_TRANSPORT_H_
#define FRAKTOR_REMOTE_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/remote/wire/frame_header.h"

namespace fraktor::inline v0 {

// What becomes of a stream that this node has opened.
class StreamListener {
 public:
  virtual ~StreamListener() = default;

  // It may be written to. Once, or never.
  virtual void OnOpened() = 0;
  // The last frame has left: the next one may be written.
  virtual void OnWritten() = 0;
  // It is over, or could not be opened. Once, at the end, also after Close; not after Shutdown.
  virtual void OnClosed(const absl::Status& why) = 0;
};

class OutboundStream {
 public:
  virtual ~OutboundStream() = default;

  // After OnOpened, and then after each OnWritten. Nothing happens if it is over.
  virtual void Write(std::string frame) = 0;
  // What has been written may still arrive. OnClosed follows.
  virtual void Close() = 0;
};

// Who is at the other end of a stream that another node has opened, as far as the transport knows.
struct StreamOrigin {
  // Where it comes from, for logs: "ipv4:10.0.0.7:41002".
  std::string endpoint = {};
  // The hosts that it has proved to be, by its certificate: it may not say that it is another one. "*.shop.example"
  // stands for one more label. Empty if nothing was proved, or if certificates do not stand for hosts.
  std::vector<std::string> hosts = {};
};

// What a receiver does of a frame when the next one of its stream is being read already: by its destructor.
class FrameSequel {
 public:
  FrameSequel() = default;
  virtual ~FrameSequel() = default;
  FrameSequel(const FrameSequel&) = delete;
  FrameSequel& operator=(const FrameSequel&) = delete;
};

// Who gets the frames of others. `stream` tells streams apart: no number is used twice as long as the transport lives.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;

  // Before the first frame of a stream. False: it is not wanted, and is cut; nothing more is heard of it.
  virtual bool OnStreamOpened(uint64_t /*stream*/, const StreamOrigin& /*origin*/) { return true; }
  // Before OnFrame, by a transport that can spare the thread for as long as handlers of messages take. What comes back is
  // destroyed by the same thread, after OnFrame, when no stream waits for it any more. Null: there is nothing to do then.
  virtual std::unique_ptr<FrameSequel> BeginFrame(std::string_view /*frame*/) { return nullptr; }
  // The frame is only there during the call. False: nothing more is wanted from this stream, which is cut.
  virtual bool OnFrame(uint64_t stream, std::string_view frame) = 0;
  // After its last frame, once, whoever has ended it; also after a false of OnFrame.
  virtual void OnStreamClosed(uint64_t /*stream*/) {}
};

// What a transport takes in. Whoever makes one decides on it.
struct TransportLimits {
  // A larger frame is refused before memory is taken for it, and its stream is cut.
  size_t max_frame_bytes = size_t{2} << 20;
  // Of frames that were read and have not been handled, of all streams together. At least one frame fits.
  size_t max_inbound_bytes = size_t{64} << 20;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Once, before anything else.
  virtual absl::Status Start(std::shared_ptr<FrameReceiver> receiver) = 0;

  // Begins to open a stream. The listener is kept until OnClosed. Never null; after Shutdown it is a stream that is over,
  // of which nothing is heard.
  virtual std::shared_ptr<OutboundStream> Connect(const PathAuthority& to, Lane lane,
                                                  std::shared_ptr<StreamListener> listener) = 0;

  // Cuts a stream that another node has opened. OnStreamClosed follows, unless it has come already.
  virtual void Cut(uint64_t stream) = 0;

  // Ends all streams. When it returns, no callback runs, and none will, whatever is called afterwards: Connect, Cut, and
  // what streams are told, do nothing then. Not from a callback, nor from a worker.
  virtual void Shutdown() = 0;

  // The port at which it listens, from when it was made on; what was picked, if 0 was asked for. It goes into the address
  // by which others know the node, unless something in between maps it to another one.
  virtual uint16_t port() const = 0;

  virtual TransportLimits limits() const = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_TRANSPORT_TRANSPORT_H_
