#include "comm/agree_on_backends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "base/ranks_text.hpp"

namespace medley::core {
namespace {

using nlohmann::json;

/// Rules decide routes, so ranks with different rules would wait for each other for ever.
void compare_rules(const std::vector<RankOffer>& offers) {
  for (std::size_t r = 1; r < offers.size(); ++r) {
    if (offers[r].rules == offers[0].rules) continue;
    throw Error(ErrorKind::mismatch,
                fmt::format("rank 0 has the rules \"{}\" but rank {} has \"{}\"; all ranks must have the same",
                            offers[0].rules, r, offers[r].rules),
                {.ranks = {0, static_cast<int>(r)}});
  }
}

/// Sizes decide the routes of messages only if all ranks say that they may.
void compare_exactness(const std::vector<RankOffer>& offers) {
  for (std::size_t r = 1; r < offers.size(); ++r) {
    const bool here = offers[r].exact, first = offers[0].exact;
    if (here == first) continue;
    throw Error(
        ErrorKind::mismatch,
        fmt::format(
            "rank {} declares that messages have exact sizes but rank {} does not; all ranks must declare the same",
            first ? 0 : r, first ? r : 0),
        {.ranks = {0, static_cast<int>(r)}});
  }
}

void compare_wishes(const std::vector<RankOffer>& offers) {
  for (std::size_t r = 1; r < offers.size(); ++r) {
    if (offers[r].wanted == offers[0].wanted) continue;
    throw Error(ErrorKind::mismatch,
                fmt::format("rank 0 asks for backends {} but rank {} for {}; all ranks must name the same, in the "
                            "same order",
                            json(offers[0].wanted).dump(), r, json(offers[r].wanted).dump()),
                {.ranks = {0, static_cast<int>(r)}});
  }
}

template <class Answer>
std::string who_gives_reasons(const std::vector<Answer>& answers, const std::string& name, std::vector<int>& ranks) {
  std::string reason;
  ranks.clear();
  for (std::size_t r = 0; r < answers.size(); ++r) {
    const Reasons& given = answers[r].reasons;
    const auto found = given.find(name);
    const std::string why = found != given.end() ? found->second : "it is not installed there";
    if (why.empty()) continue;
    if (reason.empty()) reason = why;
    ranks.push_back(static_cast<int>(r));
  }
  if (reason.empty() || ranks.size() == answers.size()) return reason;
  return fmt::format("not on {}: {}", ranks_text(ranks), reason);
}

}  // namespace

json RankOffer::to_json() const {
  return {{"host", host},
          {"kernel", kernel},
          {"cores", cores},
          {"wanted", wanted},
          {"reasons", reasons},
          {"last_choices", last_choices},
          {"job", job},
          {"rules", rules},
          {"table", {{"hash", table.hash}, {"path", table.path}, {"asked", table.asked}, {"problem", table.problem}}},
          {"cuda", cuda},
          {"check", check},
          {"hierarchical", hierarchical},
          {"exact", exact},
          {"online", online},
          {"trace", trace}};
}

RankOffer RankOffer::from_json(const json& given) {
  const auto& table = given.at("table");
  return {.host = given.at("host"),
          .kernel = given.at("kernel"),
          .cores = given.at("cores"),
          .wanted = given.at("wanted"),
          .reasons = given.at("reasons"),
          .last_choices = given.at("last_choices"),
          .job = given.at("job"),
          .rules = given.at("rules"),
          .table = {.hash = table.at("hash"),
                    .path = table.at("path"),
                    .asked = table.at("asked"),
                    .problem = table.at("problem")},
          .cuda = given.at("cuda"),
          .check = given.at("check"),
          .hierarchical = given.at("hierarchical"),
          .exact = given.at("exact"),
          .online = given.at("online"),
          .trace = given.at("trace")};
}

json OpenedBackends::to_json() const {
  return {{"reasons", reasons}, {"abilities", abilities}, {"control", control}, {"token", token}, {"misfit", misfit}};
}

OpenedBackends OpenedBackends::from_json(const json& given) {
  return {.reasons = given.at("reasons"),
          .abilities = given.at("abilities"),
          .control = given.at("control"),
          .token = given.at("token"),
          .misfit = given.at("misfit")};
}

void compare_offers(const std::vector<RankOffer>& offers) {
  if (!offers[0].trace.empty()) throw Error(ErrorKind::system, offers[0].trace);
  compare_wishes(offers);
  compare_rules(offers);
  compare_exactness(offers);
}

std::string who_lacks(const std::vector<RankOffer>& offers, const std::string& name, std::vector<int>& ranks) {
  return who_gives_reasons(offers, name, ranks);
}

std::string who_lacks(const std::vector<OpenedBackends>& opened, const std::string& name, std::vector<int>& ranks) {
  return who_gives_reasons(opened, name, ranks);
}

std::vector<std::string> names_of_all(const std::vector<RankOffer>& offers, const std::string& first) {
  std::set<std::string> seen, last;
  for (const RankOffer& offer : offers) {
    for (const auto& [name, reason] : offer.reasons) seen.insert(name);
    last.insert(offer.last_choices.begin(), offer.last_choices.end());
  }
  seen.erase(first);
  std::vector<std::string> names(seen.begin(), seen.end());
  std::stable_partition(names.begin(), names.end(), [&](const std::string& name) { return !last.contains(name); });
  names.insert(names.begin(), first);
  return names;
}

JobFacts facts_of(const std::vector<RankOffer>& offers, const std::vector<std::string>& names, bool only_chosen) {
  JobFacts job{.only_chosen = only_chosen, .names = names};
  std::set<std::string> hosts;
  for (const RankOffer& offer : offers) {
    hosts.insert(offer.host);
    // Routes that may change while the job runs may go to any backend
    job.needs_all = job.needs_all || offer.cuda.empty() || offer.hierarchical || !offer.online.empty();
  }
  job.several_hosts = hosts.size() > 1;
  job.all_alone = hosts.size() == offers.size();
  job.everywhere = [&offers](const std::string& name) {
    std::vector<int> ignored;
    return who_lacks(offers, name, ignored).empty();
  };
  return job;
}

std::vector<TableOffer> tables_of(const std::vector<RankOffer>& offers) {
  std::vector<TableOffer> tables;
  for (const RankOffer& offer : offers) tables.push_back(offer.table);
  return tables;
}

std::optional<OnlineRoutes::Mode> agreed_online_mode(const std::vector<RankOffer>& offers) {
  std::optional<OnlineRoutes::Mode> mode;
  for (const RankOffer& offer : offers) {
    if (offer.online == "1" && !mode) mode = OnlineRoutes::Mode::measure;
    if (offer.online == "shuffle") mode = OnlineRoutes::Mode::shuffle;
  }
  return mode;
}

std::string why_not_all_have_cuda(const std::vector<RankOffer>& offers) {
  for (std::size_t r = 0; r < offers.size(); ++r) {
    if (!offers[r].cuda.empty()) return fmt::format("rank {}: {}", r, offers[r].cuda);
  }
  return {};
}

std::string first_misfit(const std::vector<OpenedBackends>& opened) {
  for (const OpenedBackends& one : opened) {
    if (!one.misfit.empty()) return one.misfit;
  }
  return {};
}

}  // namespace medley::core
