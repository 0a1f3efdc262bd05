#include "optimizer/packs/pack_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "optimizer/io/transfer.h"
#include "optimizer/packs/checksum.h"

namespace sluice::optimizer {
namespace {

using protocol::PackEntry;
using protocol::PackHeader;
using protocol::PackVersion;

constexpr size_t kBuffer = 256 << 10;
constexpr uint64_t kFirstRead = 16 << 10;  // holds the head of most packs
constexpr size_t kSmall = 64 << 10;        // samples below it share a piece,
constexpr size_t kPiece = 1 << 20;         // which is not larger than this

// What a disk says of a sector that it cannot read is damage like any other.
int damage_of(int error) {
  return error == ENODATA || error == EIO || error == EUCLEAN ? EBADMSG : error;
}

}  // namespace

bool PackBuilder::add(const PackKey& key, const PackVersion& version, std::vector<char> bytes,
                      uint64_t checksum) {
  if (!can_be_packed(key, version) || bytes.size() != key.length) return false;
  const auto known = path_at_.find(std::string(key.path));
  const uint64_t more_names = known == path_at_.end() ? key.path.size() : 0;
  const uint64_t head =
      sizeof(PackHeader) + (entries_.size() + 1) * sizeof(PackEntry) + names_.size() + more_names;
  if (head > protocol::kPackMaxHead || bytes.size() > protocol::kPackMaxBytes ||
      head + data_bytes_ + bytes.size() > protocol::kPackMaxBytes) {
    return false;
  }
  const auto path = known == path_at_.end() ? static_cast<uint32_t>(names_.size()) : known->second;
  if (known == path_at_.end()) {
    path_at_.emplace(key.path, path);
    names_ += key.path;
  }
  entries_.push_back({data_bytes_, key.length, checksum, key.offset, version, path,
                      static_cast<uint32_t>(key.path.size())});
  data_bytes_ += bytes.size();
  if (bytes.size() < kSmall && !data_.empty() && data_.back().size() + bytes.size() <= kPiece) {
    data_.back().insert(data_.back().end(), bytes.begin(), bytes.end());
  } else {
    data_.push_back(std::move(bytes));
  }
  return true;
}

uint64_t PackBuilder::bytes() const {
  return sizeof(PackHeader) + entries_.size() * sizeof(PackEntry) + names_.size() + data_bytes_;
}

uint64_t PackBuilder::bytes_of(const PackKey& key) {
  return sizeof(PackHeader) + sizeof(PackEntry) + key.path.size() + key.length;
}

PackKey PackBuilder::key(const PackEntry& entry) const {
  return {std::string_view(names_).substr(entry.path, entry.path_length), entry.part, entry.length};
}

std::vector<char> PackBuilder::head() const {
  PackHeader header{};
  header.magic = protocol::kPackMagic;
  header.version = protocol::kPackVersion;
  header.bytes = bytes();
  header.index_bytes = entries_.size() * sizeof(PackEntry);
  header.names_bytes = names_.size();
  header.samples = static_cast<uint32_t>(entries_.size());
  header.entry_size = sizeof(PackEntry);
  std::vector<char> head(sizeof header + header.index_bytes + names_.size());
  char* out = head.data() + sizeof header;
  for (PackEntry entry : entries_) {
    entry.at += head.size();
    memcpy(out, &entry, sizeof entry);
    out += sizeof entry;
  }
  memcpy(out, names_.data(), names_.size());
  memcpy(head.data(), &header, sizeof header);
  header.checksum = Checksum::of(head.data(), head.size());
  memcpy(head.data(), &header, sizeof header);
  return head;
}

int PackBuilder::write(int folder, const std::string& name) const {
  const std::string temporary = name + kPackTemporary;
  UniqueFd fd(openat(folder, temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return errno;
  const std::vector<char> first = head();
  int error = write_fully(fd.get(), first.data(), first.size());
  for (const std::vector<char>& piece : data_) {
    if (error == 0) error = write_fully(fd.get(), piece.data(), piece.size());
  }
  // Not soon, but now: what is dirty cannot leave the page cache when it was read (copy()).
  if (error == 0) sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  // Quotas and network file systems may say only now that there was no room.
  if (close(fd.release()) != 0 && error == 0) error = errno;
  if (error == 0 && renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) error = errno;
  if (error != 0) unlinkat(folder, temporary.c_str(), 0);
  return error;
}

OpenedPack PackFile::open(int folder, const std::string& name) {
  // A FIFO must not make us wait for a process that opens its other end.
  UniqueFd fd(openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd) return adopt(std::move(fd));
  const int error = errno;
  if (error == ELOOP || error == ENXIO) return {nullptr, EBADMSG, "not a regular file"};
  return {nullptr, error, strerror(error)};
}

OpenedPack PackFile::adopt(UniqueFd fd) {
  OpenedPack opened;
  const std::shared_ptr<PackFile> file(new PackFile);
  file->fd_ = std::move(fd);
  opened.error = file->load(&opened.reason);
  if (opened.error != 0) return opened;
  opened.file = file;
  // A sample's neighbours are not wanted with it.
  posix_fadvise(file->fd_.get(), 0, 0, POSIX_FADV_RANDOM);
  return opened;
}

int PackFile::load(std::string* reason) {
  const auto bad = [reason](const char* why) {
    *reason = why;
    return EBADMSG;
  };
  const auto failed = [reason](int error) {
    *reason = error == ENODATA ? "cut short" : strerror(error);
    return damage_of(error);
  };
  struct stat about {};
  if (fstat(fd_.get(), &about) != 0) return failed(errno);
  if (!S_ISREG(about.st_mode)) return bad("not a regular file");
  if (about.st_uid != geteuid()) return bad("another user's");
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size < sizeof(PackHeader)) return bad("cut short");
  // Opening many packs must not read more of each than its head.
  posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);
  std::vector<char> head(std::min(size, kFirstRead));
  int error = read_fully(fd_.get(), head.data(), head.size(), 0);
  if (error != 0) return failed(error);
  bytes_ = size;
  const uint64_t whole = PackHead::bytes_of(head, size, reason);
  if (whole == 0) return EBADMSG;
  const size_t had = std::min<uint64_t>(head.size(), whole);
  head.resize(whole);
  error = read_fully(fd_.get(), head.data() + had, head.size() - had, had);
  if (error != 0) return failed(error);
  posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_NORMAL);
  return head_.parse(head, size, reason) ? 0 : EBADMSG;
}

int PackFile::copy(const PackEntry& entry, int to) const {
  static thread_local std::unique_ptr<char[]> buffer(new char[kBuffer]);
  Checksum checksum;
  for (uint64_t done = 0; done < entry.length;) {
    const size_t size = std::min<uint64_t>(kBuffer, entry.length - done);
    int error = damage_of(read_fully(fd_.get(), buffer.get(), size, entry.at + done));
    if (error == 0 && to >= 0) error = write_fully(to, buffer.get(), size);
    if (error != 0) return error;
    checksum.add(buffer.get(), size);
    done += size;
  }
  // Not what readers need twice: the copy is.
  posix_fadvise(fd_.get(), static_cast<off_t>(entry.at), static_cast<off_t>(entry.length),
                POSIX_FADV_DONTNEED);
  return checksum.value() == entry.checksum ? 0 : EBADMSG;
}

int PackFile::check(const PackEntry& entry) const { return copy(entry, -1); }

int PackFile::read(const PackEntry& entry, std::vector<char>* bytes) const {
  bytes->resize(entry.length);
  const int error = damage_of(read_fully(fd_.get(), bytes->data(), bytes->size(), entry.at));
  if (error != 0) return error;
  return Checksum::of(bytes->data(), bytes->size()) == entry.checksum ? 0 : EBADMSG;
}

}  // namespace sluice::optimizer
