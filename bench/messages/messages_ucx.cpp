// Messages by UCP's tagged sends and receives, as a program that uses UCX alone would make them. Medley's
// launcher starts the two ranks and its store hands over their addresses; nothing else of Medley runs. Run by
// bench/messages/compare; alone:
//   medley run -n 2 -- messages_ucx --seconds 0.1
#include <ucp/api/ucp.h>

#include <cstdio>

#include "bootstrap/rendezvous.hpp"
#include "messages/messages.hpp"

namespace {

using medley::bench::Message;

void require(ucs_status_t status) {
  if (status != UCS_OK) throw std::runtime_error(ucs_status_string(status));
}

class UcxLink {
 public:
  UcxLink() {
    ucp_config_t* config = nullptr;
    require(ucp_config_read(nullptr, nullptr, &config));
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    require(ucp_init(&params, config, &context_));
    ucp_config_release(config);
    ucp_worker_params_t single{};
    single.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    single.thread_mode = UCS_THREAD_MODE_SINGLE;
    require(ucp_worker_create(context_, &single, &worker_));
    connect();
  }
  ~UcxLink() {
    ucp_request_param_t none{};
    wait(ucp_ep_close_nbx(endpoint_, &none));
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  int rank() const { return rank_; }
  void send(std::span<const std::byte> data, int tag) { wait(start_send(data, tag)); }
  void recv(std::span<std::byte> data, int tag) { wait(start_recv(data, tag)); }
  void exchange(std::span<Message> messages) {
    requests_.clear();
    for (const Message& message : messages) requests_.push_back(start_recv(message.in, message.tag));
    for (const Message& message : messages) requests_.push_back(start_send(message.out, message.tag));
    for (void* request : requests_) wait(request);
  }

 private:
  void connect() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto place = medley::find_place(medley::process_environment()).value_or(medley::Place{});
    if (place.size != 2) throw std::invalid_argument("two ranks are needed: medley run -n 2 -- messages_ucx");
    rank_ = place.rank;
    const auto store = medley::connect_store(place, deadline);
    ucp_address_t* own = nullptr;
    std::size_t bytes = 0;
    require(ucp_worker_get_address(worker_, &own, &bytes));
    const std::string mine(reinterpret_cast<const char*>(own), bytes);
    ucp_worker_release_address(worker_, own);
    const auto both = medley::exchange(*store, "ucx", rank_, place.size, mine, deadline);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(both[static_cast<std::size_t>(1 - rank_)].data());
    require(ucp_ep_create(worker_, &params, &endpoint_));
    host_.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    host_.memory_type = UCS_MEMORY_TYPE_HOST;
  }
  void* start_send(std::span<const std::byte> data, int tag) {
    return ucp_tag_send_nbx(endpoint_, data.data(), data.size(), static_cast<ucp_tag_t>(tag), &host_);
  }
  void* start_recv(std::span<std::byte> data, int tag) {
    return ucp_tag_recv_nbx(worker_, data.data(), data.size(), static_cast<ucp_tag_t>(tag), ~ucp_tag_t{0}, &host_);
  }
  void wait(void* request) {
    if (!UCS_PTR_IS_PTR(request)) return require(UCS_PTR_STATUS(request));
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }

  int rank_ = 0;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_request_param_t host_{};
  std::vector<void*> requests_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const medley::bench::Options options = medley::bench::parse_options(argc, argv);
    UcxLink link;
    medley::bench::report(link, "ucx", std::string("UCX ") + ucp_get_version_string(), options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "messages_ucx: %s\n", error.what());
    return 1;
  }
}
