// UCX's configuration as Medley uses it: what the user set (UCX_… and ucx.conf), and our defaults for the rest.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

namespace medley::ucx {

using Config = std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)>;

/// `one_host`: all ranks of the context share memory.
Config read_config(bool one_host);

/// The value of a variable (named without UCX_) as text; "" when there is no such variable.
std::string value_of(const Config& config, const std::string& name);

}  // namespace medley::ucx
