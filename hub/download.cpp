#include "hub/download.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "hub/api_error.hpp"
#include "hub/blob_writer.hpp"
#include "hub/error.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto patience = std::chrono::seconds(30);  // with a process that holds a lock and makes no progress
constexpr std::uint64_t worth_resuming_bytes = 1 << 20;  // less is left to the next run only by a kill
// A lock is a file to create, which costs as much as 100 kB over loopback; smaller ones are sooner fetched
// twice.
constexpr std::uint64_t lock_from_bytes = 1 << 20;
constexpr std::chrono::milliseconds turn_while_hashing(10), longest_turn(1000);
constexpr auto between_looks = std::chrono::milliseconds(100);

constexpr std::string_view no_locks =
    "this cache's file system has no locks; pulls at the same time may download a file twice";
constexpr std::string_view no_links =
    "this cache's file system has no symbolic links; each version of a package gets files of its own";

std::uint64_t bytes_of_partials(const fs::path& blobs, const std::string& blob) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(blobs, error)) {
    std::error_code gone;
    if (entry.path().filename().string().starts_with(blob + ".")) bytes += fs::file_size(entry.path(), gone);
  }
  return bytes;
}

}  // namespace

/// One content, wanted under one path or several.
struct Download::Job {
  std::vector<const TreeEntry*> entries;
  std::optional<BlobLock> lock;
  std::optional<BlobWriter> writer;
  std::future<std::string> digest;
  bool ignores_lock = false, began_anew = false;
  std::uint64_t seen_bytes = 0;
  Clock::time_point last_progress{};

  const TreeEntry& entry() const { return *entries.front(); }
};

Download::Download(Api& api, const RepoId& repo, std::string commit, const RepoCache& cache,
                   SnapshotRecord& record, DownloadOptions options)
    : api_(api),
      repo_(repo),
      commit_(std::move(commit)),
      cache_(cache),
      record_(record),
      options_(std::move(options)) {}

Download::~Download() = default;

void Download::run(const std::vector<const TreeEntry*>& files) {
  if (files.empty()) return;
  cache_.prepare();
  require_space(files);
  if (cache_.links_fail() && api_.environment().symlinks_warning) tell(no_links);
  leftovers_ = find_leftovers(cache_.blobs());
  std::map<std::string, JobPtr> by_blob;
  for (const TreeEntry* file : files) {
    JobPtr& job = by_blob[file->blob()];
    if (job == nullptr) {
      job = std::make_shared<Job>();
      waiting_.push_back(job);
      progress_.total_bytes += file->size;
    }
    job->entries.push_back(file);
  }
  progress_.total_files = files.size();
  try {
    while (!waiting_.empty() || !locked_.empty() || !active_.empty()) {
      start_what_fits();
      api_.http().run([this] {
        place_checked(Wait::no);
        return checking_.empty() ? longest_turn : turn_while_hashing;
      });
      place_checked(Wait::yes);
      if (!locked_.empty()) wait_for_others();
    }
  } catch (const HubError& error) {
    for (const JobPtr& job : active_) {
      if (!job->writer) continue;
      if (error.kind == ErrorKind::storage || job->writer->offset() < worth_resuming_bytes)
        job->writer->discard();
    }
    for (const JobPtr& job : checking_) {
      try {
        place(job);
      } catch (const HubError&) {  // the first one is told
      }
    }
    throw;
  }
  clean_leftovers();
}

void Download::require_space(const std::vector<const TreeEntry*>& files) const {
  std::uint64_t bytes = 0;
  for (const TreeEntry* file : files) bytes += file->size;
  std::error_code error;
  const fs::space_info space = fs::space(cache_.blobs(), error);
  if (error || space.available >= bytes) return;
  throw HubError(ErrorKind::storage,
                 "the files need " + std::to_string(bytes) + " bytes, but " + cache_.folder().string() +
                     " has " + std::to_string(space.available) + " bytes free",
                 "free space on that disk (`kernels cache prune`), or set HF_HUB_CACHE to another folder");
}

void Download::tell(std::string_view text) const {
  if (options_.on_notice) options_.on_notice(std::string(text));
}

void Download::start_what_fits() {
  while (!waiting_.empty() && active_.size() < static_cast<std::size_t>(options_.parallel)) {
    const JobPtr job = waiting_.front();
    waiting_.pop_front();
    start(job);
  }
}

void Download::start(const JobPtr& job) {
  if (!job->ignores_lock && job->entry().size >= lock_from_bytes) {
    job->lock.emplace(cache_.lock_path(job->entry().blob()));
    if (job->lock->state() == BlobLock::State::busy) {
      job->lock.reset();
      locked_.push_back(job);
      return;
    }
    if (job->lock->state() == BlobLock::State::unavailable) tell(no_locks);
  }
  if (take_from_blobs(*job)) {
    job->lock.reset();
    return;
  }
  const fs::path partial = cache_.blobs() / partial_name(job->entry().blob());
  const Leftover* best = nullptr;
  for (const Leftover& leftover : leftovers_) {
    if (leftover.blob != job->entry().blob() || !leftover.resumable) continue;
    if (best == nullptr || leftover.size > best->size) best = &leftover;
  }
  if (best != nullptr) claim(*best, partial);
  job->writer.emplace(job->entry(), partial, subject(*job));
  progress_.bytes += job->writer->offset();
  job->writer->on_bytes = [this](std::int64_t bytes) {
    progress_.bytes += static_cast<std::uint64_t>(bytes);
    if (bytes > 0) received_bytes_ += static_cast<std::uint64_t>(bytes);
    if (options_.on_progress) options_.on_progress(progress_);
  };
  active_.push_back(job);
  if (job->writer->offset() == job->entry().size)
    complete(job);  // empty, or an earlier process got all of it
  else
    request(job);
}

void Download::request(const JobPtr& job) {
  Request what = api_.file_request(repo_, commit_, job->entry().path);
  what.sink = &*job->writer;
  api_.http().add(std::move(what), [this, job](const Http::Result& result) { receive(job, result); });
}

void Download::receive(const JobPtr& job, const Http::Result& result) {
  if (result.error != nullptr) std::rethrow_exception(result.error);
  if (!result.response.ok()) {
    throw api_error(result.response, subject(*job), api_.environment().token_source);
  }
  complete(job);
  start_what_fits();
}

/// The worker hashes this one while the next is received: a third of the time of small files.
void Download::complete(const JobPtr& job) {
  job->writer->close();
  job->digest = worker_.add([job] { return job->writer->digest(); });
  std::erase(active_, job);
  checking_.push_back(job);
}

void Download::place_checked(Wait wait) {
  while (!checking_.empty()) {
    const JobPtr job = checking_.front();
    if (wait == Wait::no && job->digest.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return;
    checking_.pop_front();
    try {
      place(job);
    } catch (const HubError& error) {
      const bool resumed = job->writer->resumed_from() > 0;
      if (error.kind != ErrorKind::integrity || !resumed || job->began_anew) throw;
      begin_anew(job);
    }
  }
}

/// Errors: HubError integrity or storage; the partial file is removed.
void Download::place(const JobPtr& job) {
  try {
    job->writer->require(job->digest.get());
    cache_.place_received(job->writer->path(), commit_, job->entry().path, job->entry().blob());
    record_.mark_checked(job->entry());
    place_others(*job, 1);
  } catch (const HubError&) {
    job->writer->discard();
    throw;
  }
  progress_.files += job->entries.size();
  if (options_.on_progress) options_.on_progress(progress_);
  job->writer.reset();
  job->lock.reset();
}

/// What an earlier process left was damaged.
void Download::begin_anew(const JobPtr& job) {
  job->began_anew = true;
  progress_.bytes -= std::min(progress_.bytes, job->entry().size);
  auto on_bytes = job->writer->on_bytes;
  job->writer.emplace(job->entry(), cache_.blobs() / partial_name(job->entry().blob()), subject(*job));
  job->writer->on_bytes = std::move(on_bytes);
  active_.push_back(job);
  request(job);
}

bool Download::take_from_blobs(const Job& job) {
  const fs::path blob = cache_.blob(job.entry().blob());
  std::error_code missing;
  if (!fs::is_regular_file(blob, missing)) return false;
  if (fs::file_size(blob, missing) != job.entry().size ||
      digest_of(job.entry(), blob) != job.entry().blob()) {
    tell("the cached " + blob.string() + " is damaged (checksum mismatch); it is downloaded again");
    fs::remove(blob, missing);
    return false;
  }
  place_others(job, 0);
  progress_.files += job.entries.size();
  progress_.bytes += job.entry().size;
  return true;
}

void Download::place_others(const Job& job, std::size_t from) {
  for (std::size_t i = from; i < job.entries.size(); ++i) {
    if (cache_.has_links()) {
      cache_.link(commit_, job.entries[i]->path, job.entry().blob());
    } else {
      const fs::path first = cache_.snapshot(commit_) / job.entry().path;
      cache_.copy(from == 0 ? cache_.blob(job.entry().blob()) : first, commit_, job.entries[i]->path);
    }
    record_.mark_checked(*job.entries[i]);
  }
}

void Download::wait_for_others() {
  std::this_thread::sleep_for(between_looks);
  const auto now = Clock::now();
  for (const JobPtr& job : locked_) {
    const std::uint64_t bytes = bytes_of_partials(cache_.blobs(), job->entry().blob());
    const bool first = job->last_progress == Clock::time_point{};
    if (first) tell("another process downloads " + job->entry().path + "; waiting for it");
    if (first || bytes != job->seen_bytes) {
      job->seen_bytes = bytes;
      job->last_progress = now;
    }
    job->ignores_lock = now - job->last_progress > patience;
    waiting_.push_back(job);
  }
  locked_.clear();
}

void Download::clean_leftovers() const {
  for (const Leftover& leftover : leftovers_)
    ::unlink(leftover.path.c_str());  // a claimed one has another name now
}

std::string Download::subject(const Job& job) const {
  return job.entry().path + " of " + std::string(name_of(repo_.type)) + " " + repo_.text();
}

}  // namespace neuron_kernels::hub
