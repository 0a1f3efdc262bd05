// sluice-lmdb: makes, inspects and prepares LMDB data sets for training.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "lmdb/failure.h"
#include "lmdb_tools/commands.h"
#include "protocol/program_version.h"

namespace sluice::lmdb {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

// The argument that names the database of a command.
void add_database(CLI::App* command, std::string* path) {
  command->add_option("database", *path, "folder with data.mdb, or the file")
      ->required()
      ->type_name("DB");
}

void add_make(CLI::App& app) {
  auto options = std::make_shared<MakeOptions>();
  CLI::App* command =
      app.add_subcommand("make", "Make a database of Caffe Datum records from images");
  command->footer(
      "For instance\n"
      "  sluice-lmdb make FOLDER OUT\n"
      "  sluice-lmdb make --idx IMAGES LABELS OUT\n"
      "\n"
      "SOURCE is a folder of .jpg, .jpeg and .png files, whose subfolders in sorted order are\n"
      "the classes 0, 1, ...; or --idx names two idx files. Keys are 00000000_NAME and ascend\n"
      "as the records were written. Decoded images are stored as planes, colour as B, G, R. The\n"
      "database is made in OUT.partial and renamed when it is whole; interrupted, the same\n"
      "command continues it and makes the very same file. OUT must not exist.");
  command->add_option("--idx", options->idx, "idx files of images and labels, plain or gzip")
      ->expected(2)
      ->type_name("IMAGES LABELS");
  command->add_option("paths", options->paths, "the folder, unless --idx is given, and OUT")
      ->required()
      ->expected(1, 2)
      ->type_name("[SOURCE] OUT");
  command->add_flag("--encoded", options->encoded, "store image files as they are");
  command->add_flag("--grey,--gray", options->grey, "one plane of grey instead of three of colour");
  command->add_option("--resize", options->resize, "scale to this size")->type_name("WxH");
  auto* count = command->add_option("--count", options->count,
                                    "this many records, repeating the images in turn if need be");
  count->type_name("N")->check(CLI::Range(uint64_t{1}, uint64_t{100'000'000}));
  command
      ->add_option("--min-bytes", options->min_bytes,
                   "as many records as make this many bytes of values, repeating the images in "
                   "turn")
      ->type_name("SIZE")
      ->excludes(count);
  command->add_option("--commit", options->commit, "records of a transaction at most")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000}));
  command->callback([options] { make(*options); });
}

void add_stat(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("stat", "Entries, pages and sizes of a database");
  add_database(command, path.get());
  command->callback([path] { print_stat(*path); });
}

void add_layout(CLI::App& app) {
  auto options = std::make_shared<LayoutOptions>();
  CLI::App* command = app.add_subcommand(
      "layout", "Where each value lies in data.mdb, and how sequential the file is");
  command->footer(
      "Two records follow each other if the second begins on the page where the first ends or\n"
      "at most two pages after it (a page of the tree may lie between).");
  auto* csv =
      command->add_flag("--csv", options->csv,
                        "print key,offset,length of every value; bytes of a key that are not "
                        "printable, and backslashes, as \\xNN");
  auto* batch = command->add_option("--batch", options->batch,
                                    "advise a stripe size for batches of N records");
  batch->type_name("N")->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))->excludes(csv);
  command->add_option("--gpus", options->gpus, "GPUs of a node, each with a batch of its own")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1024}))
      ->needs(batch);
  add_database(command, &options->path);
  command->callback([options] { layout(*options); });
}

void add_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand(
      "verify", "Read every page and record, check all that can be checked, and print digests");
  command->footer("A damaged or truncated file gives one line that says where, and status 1.");
  command->add_flag("--datum", options->datum, "also check that each value is a whole Datum");
  add_database(command, &options->path);
  command->callback([options] { verify(*options); });
}

void add_ranges(CLI::App& app) {
  auto options = std::make_shared<RangesOptions>();
  CLI::App* command = app.add_subcommand(
      "ranges", "Contiguous ranges of keys, one for each reader, with every key in one of them");
  command->footer(
      "First and last key belong to the range. With more readers than records some get none.");
  command->add_option("--ranks", options->ranks, "number of readers")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000}));
  command->add_option("--by", options->by, "what is shared out equally")
      ->capture_default_str()
      ->check(CLI::IsMember({"bytes", "count"}));
  command->add_flag("--json", options->json, "print JSON; keys also in hexadecimal");
  add_database(command, &options->path);
  command->callback([options] { ranges(*options); });
}

void add_replicas(CLI::App& app) {
  auto options = std::make_shared<ReplicasOptions>();
  CLI::App* command = app.add_subcommand(
      "replicas", "A folder for each process, with a lock file of its own and the shared data");
  command->footer(
      "Makes OUT/0, OUT/1, ..., each with a lock file and a link to data.mdb, so that readers do\n"
      "not contend for one lock file on a parallel file system. For reading only: a writer would\n"
      "not see the readers of other folders, and destroy what they read. OUT must not exist.");
  command->add_option("--count", options->count, "number of processes")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(1U, 100'000U));
  add_database(command, &options->path);
  command->add_option("out", options->out, "folder to make")->required()->type_name("OUT");
  command->callback([options] { replicas(*options); });
}

void add_reorder(CLI::App& app) {
  auto options = std::make_shared<ReorderOptions>();
  CLI::App* command = app.add_subcommand(
      "reorder",
      "Copy a database in shuffled order, so that a sequential scan gives shuffled records");
  command->footer(
      "Keys are renumbered: the record that becomes number 7 and was 00000042_NAME is now\n"
      "00000007_NAME; a key of another form, KEY, becomes 00000007_KEY. Values stay as they\n"
      "are. The same seed gives the same order everywhere. Resumable as make is. Reads IN in\n"
      "random order: have it on fast storage. OUT must not exist.");
  command->add_option("--seed", options->seed, "number that decides the order")
      ->required()
      ->type_name("S");
  command->add_option("in", options->in, "database to read")->required()->type_name("IN");
  command->add_option("out", options->out, "database to make")->required()->type_name("OUT");
  command->callback([options] { reorder(*options); });
}

int report_usage(const char* problem) {
  fmt::print(stderr, "sluice-lmdb: {} (see --help)\n", problem);
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Makes, inspects and prepares LMDB data sets for training", "sluice-lmdb");
  app.set_version_flag("--version", fmt::format("sluice-lmdb {}", protocol::kProgramVersion));
  app.require_subcommand(1);
  add_make(app);
  add_stat(app);
  add_layout(app);
  add_verify(app);
  add_ranges(app);
  add_replicas(app);
  add_reorder(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    return report_usage(error.what());
  } catch (const Usage& error) {
    return report_usage(error.what());
  }
  return 0;
}

}  // namespace
}  // namespace sluice::lmdb

int main(int argc, char** argv) {
  try {
    return sluice::lmdb::run(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "sluice-lmdb: out of memory\n");
  } catch (const std::exception& failure) {
    fmt::print(stderr, "sluice-lmdb: {}\n", failure.what());
  }
  return sluice::lmdb::kFailed;
}
