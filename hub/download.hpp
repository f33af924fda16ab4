// Brings files of one commit into the cache: in parallel, one request each, resumed, checked, then linked.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hub/api.hpp"
#include "hub/cache.hpp"
#include "hub/partial.hpp"
#include "hub/snapshot_record.hpp"
#include "hub/worker.hpp"

namespace neuron_kernels::hub {

struct Progress {
  std::uint64_t bytes = 0, total_bytes = 0;
  std::size_t files = 0, total_files = 0;
};

struct DownloadOptions {
  int parallel = 8;
  std::function<void(const Progress&)> on_progress = {};
  /// Told in one line; what concerns several files comes for each.
  std::function<void(const std::string&)> on_notice = {};
};

class Download {
 public:
  Download(Api& api, const RepoId& repo, std::string commit, const RepoCache& cache, SnapshotRecord& record,
           DownloadOptions options);
  ~Download();

  /// All `files` are in the snapshot when it returns.
  /// errors: HubError integrity, storage, network or what the hub says; files that were complete stay
  void run(const std::vector<const TreeEntry*>& files);

  /// Bytes that came over the network.
  std::uint64_t received_bytes() const { return received_bytes_; }

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;

  void require_space(const std::vector<const TreeEntry*>& files) const;
  void tell(std::string_view text) const;
  void start_what_fits();
  void start(const JobPtr& job);
  void request(const JobPtr& job);
  void receive(const JobPtr& job, const Http::Result& result);
  void complete(const JobPtr& job);
  enum class Wait { no, yes };
  void place_checked(Wait wait);
  void place(const JobPtr& job);
  void begin_anew(const JobPtr& job);
  bool take_from_blobs(const Job& job);
  void place_others(const Job& job, std::size_t from);
  void wait_for_others();
  void clean_leftovers() const;
  std::string subject(const Job& job) const;

  Api& api_;
  const RepoId& repo_;
  std::string commit_;
  const RepoCache& cache_;
  SnapshotRecord& record_;
  DownloadOptions options_;
  std::vector<Leftover> leftovers_;
  std::deque<JobPtr> waiting_, locked_;  // locked_: another process downloads them
  std::vector<JobPtr> active_;
  std::deque<JobPtr> checking_;  // all bytes are there
  Progress progress_;
  std::uint64_t received_bytes_ = 0;
  Worker worker_;  // last: it reads the jobs
};

}  // namespace neuron_kernels::hub
