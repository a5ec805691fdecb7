#include "src/comm/staged_transport.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

#include "src/comm/sent_counts.hpp"
#include "src/comm/staged_carrier.hpp"

namespace hcp {

class StagedTransports::Shared : public StagedCarrier {
 public:
  using StagedCarrier::StagedCarrier;
};

namespace {

class StagedTransport final : public Transport {
 public:
  StagedTransport(std::shared_ptr<StagedCarrier> carrier, const MpiCommunicator& comm, double timeout_s)
      : carrier_{std::move(carrier)},
        end_{.comm = MpiCommunicator::duplicate(comm.get()),
             .peers = Peers{comm},
             .timeout_s = timeout_s,
             .sends = {},
             .receives = {}} {}
  StagedTransport(const StagedTransport&) = delete;
  StagedTransport& operator=(const StagedTransport&) = delete;
  ~StagedTransport() override {
    if (unfinished_ > 0 && std::uncaught_exceptions() == 0) {
      std::fputs("hcp: messages were posted and never finished\n", stderr);
      std::abort();
    }
    carrier_->close(end_);
  }

  int rank() const override { return end_.peers.rank(); }
  int size() const override { return end_.peers.size(); }
  MemorySpace memory_space() const override { return MemorySpace::device; }

  Ticket post(const MessageSet& messages) override {
    end_.peers.check(messages);
    if (messages.collective != Collective::none) {
      throw std::logic_error{"the staged transport knows no collectives (" + messages.what + ")"};
    }
    const int id = carrier_->open(end_, messages);
    sent_.add(messages);
    ++unfinished_;
    return Ticket{*this, id};
  }

  std::vector<SentCount> sent() const override { return sent_.list(); }
  void reset_counts() override { sent_.reset(); }

 protected:
  void wait(int ticket) override { carrier_->wait(ticket); }
  void finish(int ticket) override {
    carrier_->finish(ticket);
    --unfinished_;
  }

 private:
  std::shared_ptr<StagedCarrier> carrier_;
  StagedEnd end_;
  SentCounts sent_;
  int unfinished_ = 0;  ///< tickets
};

}  // namespace

StagedTransports::StagedTransports(std::shared_ptr<cuda::Stream> compute, DevicePath path,
                                   std::int64_t chunk_bytes)
    : shared_{std::make_shared<Shared>(std::move(compute), path, chunk_bytes)} {}

StagedTransports::~StagedTransports() = default;

std::unique_ptr<Transport> StagedTransports::make(const MpiCommunicator& comm, double timeout_s) {
  return std::make_unique<StagedTransport>(shared_, comm, timeout_s);
}

}  // namespace hcp
