"""The table of figures: what each is, and its goal."""
from bench.lib.figure import Figure
from bench.lib.figure_table_importance import IMPORTANCE

FIGURES = {
    "lmdb_cold_over_warm_pfs": Figure(
        "ratio", 1.03, "slowfs, 0.5 ms and 400 MB/s: cold with Sluice / warm without"),
    "lmdb_baseline_over_warm_pfs": Figure(
        "ratio", None, "the same mount: cold without Sluice / warm, read-ahead 128 KiB"),
    "lmdb_baseline_over_warm_pfs_ra16m": Figure(
        "ratio", None, "the same with a read-ahead of 16 MiB"),
    "lmdb_cold_over_warm_far": Figure(
        "ratio", 1.05, "slowfs, 3 ms and 400 MB/s: cold with Sluice / warm without"),
    "lmdb_cold_over_warm_disk": Figure(
        "ratio", 1.03, "disk limited to 300 MB/s: cold with Sluice / warm without"),
    "lmdb_link_share": Figure(
        "ratio", 0.97, "rate of a reader that only reads, cold with Sluice / fio's rate", True),
    "skipping_link_share": Figure(
        "ratio", 0.95, "the same, four processes that take turns through one file", True),
    "stream_link_share": Figure("ratio", 0.97, "the same, plain read() of the file", True),
    "checkpoint_overhead": Figure(
        "ratio", 1.01, "warm at 1 GB/s, second pass: cells without prefetch / without Sluice"),
    "checkpoint_overhead_first_pass": Figure("ratio", None, "the same, first pass"),
    "observe_overhead": Figure(
        "ratio", 1.01, "warm at 1 GB/s, second pass: observed, no prefetch / without Sluice"),
    "observe_overhead_first_pass": Figure("ratio", None, "the same, first pass"),
    "noncached_bytes_cell": Figure(
        "bytes", 524288, "demanded from slowfs by the reader's own process: cells"),
    "noncached_bytes_observe": Figure("bytes", 1048576, "the same: a plain mapping, observed"),
    "noncached_bytes_page": Figure("bytes", None, "the same: one page per distance"),
    "noncached_bytes_cold_start": Figure(
        "bytes", None, "the same: cells, the optimizer started by the job itself"),
    "arm_1tib_ms": Figure("ms", 5, "mmap of 1 TiB, armed, minus the same without Sluice"),
    "arm_1tib_vmas": Figure(
        "count", 64, "most VMAs of that mapping, read at 100 random places and through 1 GiB"),
    "random_lmdb_overhead": Figure(
        "ratio", 1.02, "random reads of a warm LMDB with Sluice / without"),
    "start_cost_us": Figure("us", 500, "added to /bin/true"),
    "start_cost_over_empty_us": Figure(
        "us", 80, "the same beyond what an empty preloaded object adds"),
    "optimizer_cpu_s_per_gb": Figure(
        "s/GB", 0.5, "processor time of the optimizer for 10^9 bytes, pfs mount"),
    "optimizer_rss_mb": Figure("MB", 48, "peak memory of the optimizer, pfs mount"),
    "lmdb_random_link_share_busy": Figure(
        "ratio", 0.90, "shuffled PyTorch over an LMDB, 2 ms and 200 MB/s, third epoch: rate / link",
        True),
    "lmdb_random_first_epoch_link_share_busy": Figure(
        "ratio", None, "the first epoch: the keys are guessed after a few samples", True),
    "lmdb_random_speedup_busy": Figure(
        "ratio", None, "the same epoch without Sluice / with it"),
    "lmdb_random_bytes_at_20": Figure(
        "ratio", None, "bytes read from storage in the third epoch / the records', with memory for"
        " 20 % of them (0.80 is the bound)"),
    "lmdb_random_cached_at_20": Figure(
        "ratio", None, "bytes of that LMDB in the page cache when the third epoch begins / the memory"
        " given"),
    "lmdb_small_speedup_busy": Figure(
        "ratio", None, "records of one page in an LMDB, 10 ms and 100 MB/s, third epoch: without"
        " Sluice / with it"),
    "lmdb_small_speedup_requests": Figure(
        "ratio", None, "the same, 2 ms for each request, four at a time, 125 MB/s"),
    "lmdb_small_link_share_requests": Figure("ratio", None, "there: rate / link", True),
    "lmdb_small_requests": Figure("ratio", None, "there: requests to the storage / samples"),
    "lmdb_small_requests_at_20": Figure(
        "ratio", None, "the same with memory for 20 % of the file, third epoch"),
    "files_link_share_near": Figure(
        "ratio", 0.90, "10,000 shuffled files of 100 KB, PyTorch, 0.5 ms and 200 MB/s, third epoch,"
        " memory for a window only: rate over the link / link", True),
    "files_link_share_busy": Figure("ratio", 0.90, "the same, 2 ms", True),
    "files_link_share_cloud": Figure("ratio", 0.90, "the same, 10 ms", True),
    "files_first_epoch_link_share_busy": Figure(
        "ratio", 0.85, "the first epoch at 2 ms, of a dataset that says where its files are", True),
    "files_speedup_busy": Figure(
        "ratio", 3.4, "an epoch without Sluice / the third with it, 2 ms", True),
    "files_speedup_cloud": Figure("ratio", 15, "the same, 10 ms", True),
    "files_speedup_best_workers": Figure(
        "ratio", None, "the same, against the best of 4 to 64 workers without Sluice; with it 4", True),
    **{f"window_share_{kind}": Figure(
        "ratio", 0.9 if kind == "ordinary" else None, meaning, True) for kind, meaning in {
            "ordinary": "2,000 shuffled files of 100 KB, PyTorch, 10 ms and 200 MB/s, third epoch: rate / link;"
                        " a job that opens and reads a file in __getitem__",
            "getitems": "the same, in PyTorch 2's __getitems__",
            "mosaic": "the same, three other samples' files in each __getitem__",
            "lazy_pil": "the same, images decoded in collate_fn",
            "np_load": "the same, np.load, which reads through a dup",
            "mmap_mode": "the same, np.load with mmap_mode",
            "thread_pool": "the same, read by a pool of threads of __getitem__",
            "child": "the same, read by a child process for each",
            "h5py": "the same, read by HDF5's library",
            "kept_open": "the same, where a worker leaves the last 64 files open",
        }.items()},
    **{f"window_speedup_{kind}": Figure(
        "ratio", None, f"that job ({kind}): an epoch without Sluice / the third with it", True) for kind in (
            "ordinary", "getitems", "mosaic", "lazy_pil", "np_load", "mmap_mode", "thread_pool", "child", "h5py",
            "kept_open")},
    **{f"opened_ahead_over_copy_{ground}": Figure("ratio", None, meaning) for ground, meaning in {
        "near": "originals that a sidecar opened and read ahead, and hands over at each open / copies in tmpfs:"
                " open, fstat, read, close of a file of 100 KB, 0.5 ms",
        "busy": "the same, 2 ms", "cloud": "the same, 10 ms",
        "cloud_old": "the same, 10 ms, two seconds after they were opened: attributes have expired",
        "cloud_batch": "the same, 10 ms, 32 originals a message",
        "cloud_no_keep": "the same, 10 ms, a mount that empties a file's cache when it is opened",
        "gluster": "the same, GlusterFS at 800 Mbit/s"}.items()},
    "files_hit_over_page_cache": Figure(
        "ratio", 1.3, "open, fstat, read, close of a staged file of 100 KB / of a warm local one"),
    "files_tmpfs_over_page_cache": Figure(
        "ratio", None, "the same of copies in /dev/shm without Sluice / of warm local files: the bound"),
    "files_bytes_at_20": Figure(
        "ratio", 0.81, "bytes read from storage in the third epoch / the dataset's, with memory for"
        " 20 % of it"),
    "two_jobs_bytes": Figure(
        "ratio", 1.1, "bytes that two jobs over one dataset read, started together / the"
        " dataset's"),
    "train_fashion_speedup_busy": Figure(
        "ratio", None, "training of a small CNN on 12,000 images of Fashion-MNIST, a file each, 2 ms:"
        " two epochs from start to end without Sluice / with it, every loss the same"),
    "order_overhead": Figure(
        "ratio", 1.02, "loader-only PyTorch over warm files: adapter on / off, both under Sluice"),
    "order_overhead_4k": Figure(
        "ratio", 1.02, "the same over files of 4 KB: with Sluice / without it"),
    "simulate_14m_s": Figure(
        "s", 120, "sluice simulate: 14 million samples, 3 epochs, 3 policies, in under 2 GiB"),
    "simulate_14m_rss_mb": Figure("MB", None, "its peak memory"),
    "index_bytes_per_sample": Figure(
        "bytes", 100, "growth of an optimizer's Rss for 2 million samples: places, and 2 orders"),
    "lru_hit_20": Figure(
        "ratio", None, "simulated: hits of LRU with 20 % of the samples in memory, of all requests"),
    "lru_hit_40": Figure("ratio", None, "the same, 40 %"),
    "lru_hit_60": Figure("ratio", None, "the same, 60 %"),
    "lru_hit_80": Figure("ratio", None, "the same, 80 %"),
    "lru_hit_error": Figure(
        "difference", 0.01, "the furthest of them from c + (1 - c) ln(1 - c), in whatever seed"),
    "icache_hit_20": Figure(
        "ratio", 0.37, "simulated: iCache, 20 % in memory: answered from memory, by the sample or a"
        " stand-in", True),
    "icache_hit_40": Figure("ratio", 0.55, "the same, 40 %", True),
    "icache_hit_60": Figure("ratio", 0.69, "the same, 60 %", True),
    "icache_hit_80": Figure("ratio", 0.83, "the same, 80 %", True),
    "icache_substituted_20": Figure(
        "ratio", 0.12, "of icache_hit_20, by a stand-in; of all requests"),
    "icache_hc_hit_20": Figure(
        "ratio", 0.25, "simulated: importance sampling and the H-cache alone, without substitution", True),
    "icache_iis_fetched": Figure(
        "ratio", 0.686, "samples that importance sampling asks for in 90 epochs / all"),
    "bytes_told_over_bytes_read": Figure(
        "share", 0.01, "iis with substitution, live, three settings: samples that were said to come from memory"
        " and that were read from storage / all that were said to"),
    **IMPORTANCE,
    "packs_speedup_exact": Figure(
        "ratio", None, "a fifth of 12,000 files in memory, storage of 10 ms and 100 MB/s, 40 ms of computing a"
        " batch, exact supply: epochs without / with packs on the local disk"),
    "packs_speedup_iis": Figure(
        "ratio", None, "the same, with iis and substitution"),
    "packs_read_share": Figure(
        "share", None, "of the bytes that the first of these fetched in its seven epochs, those that packs had"),
    "ssd_random_over_sequential": Figure(
        "ratio", None, "the stand-in for an SSD, fio at depth 6: random reads of a sample's size / sequential ones of 4 MiB"
        " (published: 1/5.2 to 1/7.4)"),
    "chunks_read_share": Figure(
        "ratio", 0.95, "chunks of lcache's log, read whole from the stand-in by four threads and every sample compared with its"
        " checksum: rate / fio's sequential rate for the same size and depth", True),
    "chunks_read_share_disk": Figure("ratio", 0.95, "the same on this machine's disk", True),
    "lcache_metaindex_build_s_14m": Figure(
        "s", 10, "processor time in which 14 million samples get their places in lcache's two logs, both orders"),
    "lcache_metaindex_bytes_per_sample": Figure(
        "bytes", 100, "growth of Rss for these places and the samples' sizes"),
    "pool_over_exact": Figure(
        "ratio", 4, "20,000 shuffled files of 10 KB, 2 ms, 2,000 requests/s, 500 MB/s, memory for a fifth, 6 workers, chunks of"
        " 64 on the same storage: later epochs as Sluice supplies them exactly / with policy pool", True),
    "pool_over_exact_lmdb": Figure(
        "ratio", None, "the same of 20,000 records of an LMDB, which is its own chunks: second and third epoch exactly / with"
        " policy pool", True),
    "pool_requests_share_lmdb": Figure("ratio", None, "there: requests with policy pool / exactly"),
    "bytes_over_bound_exact": Figure(
        "ratio", 1.02, "there, exact: bytes read from storage in later epochs / those of the samples that this memory"
        " cannot hold"),
    "bytes_over_bound_pool": Figure("ratio", 1.01, "the same of policy pool"),
    "pool_over_brand": Figure(
        "ratio", 3, "the same at 2 ms and 200 MB/s with memory for a quarter: with policy brand / with pool", True),
    "bytes_over_bound_brand": Figure("ratio", None, "the same of policy brand, with memory for a quarter"),
    "pool_loads_per_chunk_25": Figure("ratio", 1, "there: chunks that pool reads in an epoch / all"),
    "brand_loads_per_chunk_25": Figure("ratio", None, "chunks that brand reads, likewise (published algorithm: 7.2)"),
    "brand_over_plain_16": Figure(
        "ratio", 1.77, "as pool_over_exact, with memory for 16 %: without Sluice / with policy brand (published: 1.77)", True),
    "brand_over_plain_35": Figure("ratio", 2.13, "the same with memory for 35 % (published: 2.13)", True),
    "brand_over_coordl_16": Figure(
        "ratio", 1.64, "CoorDL's cache (policy minio) with the same prefetcher, 16 % / with brand (published: 1.64)", True),
    "brand_over_coordl_35": Figure("ratio", 1.45, "the same with memory for 35 % (published: 1.45)", True),
    **{f"{name}_top1_loss_points": Figure("points", 0.2, f"upper bound (95 %, one-sided) of the mean of {name}_top1_difference")
       for name in ("brand", "pool")},
    **{f"{name}_top1_difference": Figure(
        "points", None, "top-1 of a small ResNet and a small VGG on Fashion-MNIST, five epochs, in the loader's own"
        f" order - in that of policy {name} with memory for a fifth; mean of both, by seed")
       for name in ("brand", "pool")},
    "lcache_over_plain_ssd": Figure(
        "ratio", 9.4, "8,000 shuffled files of 100 KB on it, none cached as an epoch begins, 6 workers: second and later epochs"
        " without Sluice / with SLUICE_POLICY=lcache and memory for a fifth of them (published: 9.4)", True),
    "lcache_over_plain_ssd_bound": Figure(
        "ratio", None, "the same epochs without Sluice / the time in which it reads in sequence what memory cannot hold"),
    "lcache_over_nopfs_policy": Figure(
        "ratio", 7.8, "the same with the same prefetcher, where memory retains what was read first (NoPFS on one host) and"
        " the rest is read file by file, / with lcache (published, with NoPFS's own prefetcher: 7.8)", True),
    "lcache_partial_48": Figure(
        "ratio", 1.6, "10,000 shuffled files of 100 KB, 2 ms and 200 MB/s, 6 workers, both logs together 48 % of them, on the"
        " local disk, memory for a sixth: second and later epochs without Sluice / with policy lcache (published: 1.45)", True),
    "lcache_partial_48_prefetch": Figure("ratio", None, "the same epochs as Sluice supplies them without a log / with it"),
    "lcache_over_prefetch_ssd": Figure(
        "ratio", 2, "the same epochs as Sluice supplies them from the files, with the same prefetcher / with lcache", True),
    "lcache_ssd_share": Figure("ratio", 0.90, "rate of lcache's epochs / fio's sequential rate", True),
    "lcache_ssd_share_cached": Figure("ratio", None, "the same without Sluice, all files in the page cache: the job's own"),
    "lcache_remote_bytes_epoch2": Figure(
        "bytes", 0, "10,000 shuffled files of 100 KB, 2 ms and 200 MB/s, policy lcache with room for all of them on the local"
        " disk, memory for a sixth: read from their storage in the second epoch"),
    "lcache_remote_bytes_epoch3": Figure("bytes", 0, "the same in the third"),
    "scan_speedup_busy": Figure(
        "ratio", 5, "os.walk() and a stat() of 100,000 files in 1,000 folders, cold, 2 ms a request, on a mount that"
        " caches listings as NFS does: time without Sluice / with it", True),
    "scan_speedup_uncached": Figure(
        "ratio", None, "the same on a FUSE mount that does not: only names and attributes can be fetched ahead", True),
    "import_speedup_far": Figure(
        "ratio", 3, "a second start of `import torch, transformers`, packages behind 3 ms, nothing cached, on a mount"
        " that caches names and listings for a minute, as NFS does: time without Sluice / with it", True),
    "import_speedup_far_bound": Figure(
        "ratio", None, "the same, without Sluice / without it once more at once: all is cached, and each open still takes"
        " a round trip", True),
    "import_speedup_far_uncached": Figure(
        "ratio", None, "as the first, on a FUSE mount with its defaults: names for a second, no listings", True),
    "torch2_exactness": Figure(
        "count", 0, "what differs with Sluice, and with importance=loss, in any case of tests/stack: indices, bytes, losses,"
        " generators, exceptions, status"),
    "torch2_exactness_cases": Figure("count", 200, "those cases: jobs of PyTorch 2.13 and what stands on it", True),
    "compile_step_overhead": Figure(
        "ratio", 1.03, "a training step that inductor compiles with its loss: SLUICE_IMPORTANCE=loss / off, both under"
        " Sluice"),
    "compile_step_overhead_observed": Figure(
        "ratio", 1.03, "the same, the network compiled and its loss computed outside, where it is observed"),
    "separate_files_over_lmdb_pfs": Figure(
        "ratio", None, "the same records cold from separate files / from LMDB, without Sluice"),
}

# Taken by scripts/bench-harm, which measures for an hour.
ELSEWHERE = {
    "harm_worst": Figure(
        "ratio", 1.03, "jobs that were not written for Sluice: the largest lower bound (95 %) of any epoch's, or"
        " whole run's, wall time with it / without, over all rows"),
    "harm_plain_worst": Figure("ratio", None, "the same bound of a second run without it / without"),
    "harm_mean": Figure("ratio", 1.00, "the geometric mean of all of these epochs' ratios"),
    "savings_error": Figure(
        "ratio", 1.0, "the same jobs at 10 ms: how far what the report says was saved is off from what was (plain"
        " less Sluice), over 0.3 s or a fifth of it; the worst row"),
    # Taken by scripts/bench-formats.
    "load_safetensors_link_share": Figure(
        "ratio", 0.93, "1.3 GB of weights in a mapped safetensors file, 10 ms and 200 MB/s, cold with Sluice, read in"
        " the header's order: rate / the lesser of the link's and the job's own with all in memory", True),
    "load_safetensors_link_share_by_name": Figure("ratio", 0.93, "the same, tensors sorted by name", True),
    "load_safetensors_link_share_shuffled": Figure("ratio", 0.93, "the same, tensors in a random order", True),
    "load_safetensors_link_share_threads": Figure("ratio", 0.93, "the same, by 8 threads", True),
    "load_safetensors_link_share_sharded": Figure("ratio", 0.93, "the same, in 8 files, one after the other", True),
    "load_safetensors_link_share_tp4": Figure(
        "ratio", 0.93, "the same, by four processes at once, each its rows of every tensor", True),
    "load_safetensors_rank_link_share": Figure("ratio", 0.80, "one of these alone: its own bytes' rate", True),
    "load_safetensors_rank_shuffled_link_share": Figure("ratio", 0.80, "the same, tensors in a shuffled order", True),
    "load_torch_link_share": Figure("ratio", 0.93, "the same of torch.load(mmap=True)", True),
    "load_torch_read_link_share": Figure("ratio", 0.93, "the same of torch.load without", True),
    "load_gguf_link_share": Figure("ratio", 0.93, "the same of a GGUF file, by GGUFReader", True),
    "load_numpy_link_share": Figure("ratio", 0.93, "the same of numpy.load with mmap_mode", True),
    "load_header_only_bytes": Figure(
        "bytes", 4e6, "that file opened for the names and one tensor of 13 MB: bytes read beyond those"),
    "load_transformers_speedup_far": Figure(
        "ratio", 5, "from_pretrained of those 8 files, 3 ms and 200 MB/s: time without Sluice / with it", True),
    "load_over_best_peer": Figure(
        "ratio", 1.05, "the mapped file in the header's order / the fastest of Run:ai's streamer, fastsafetensors and"
        " reading at depth 32, at 10 ms"),
    "files_any_first_epoch_link_share": Figure(
        "ratio", 0.85, "the first epoch over 8,000 image files of 130 KB, cold with Sluice, 2 ms and 200 MB/s, 8 workers,"
        " in the least of eight differently written datasets: rate / the lesser of the link's and the job's own with"
        " all in memory", True),
    "webdataset_link_share": Figure(
        "ratio", 0.85, "the first epoch over 8,000 samples of 130 KB in tar shards that are shuffled, by WebDataset, cold"
        " with Sluice, 10 ms and 200 MB/s, 4 workers: rate / the lesser of the link's and the job's own with all in"
        " memory", True),
    "tfrecord_link_share": Figure("ratio", 0.85, "the same in TFRecord shards that are shuffled", True),
    "parquet_link_share": Figure("ratio", 0.85, "the same in Parquet files, their row groups in order", True),
    "parquet_shuffled_link_share": Figure("ratio", 0.70, "the same, row groups of 2.6 MB shuffled", True),
    "arrow_link_share": Figure("ratio", 0.85, "the same shuffled in mapped Arrow files, by datasets", True),
    "hdf5_link_share": Figure("ratio", 0.70, "the same shuffled in an HDF5 dataset, a chunk each, by h5py", True),
    "zarr_link_share": Figure("ratio", 0.70, "the same shuffled in a Zarr array, a chunk each", True),
    "lmdb_wheel_link_share": Figure("ratio", 0.90, "the same shuffled in LMDB, by PyPI's lmdb, 2 ms", True),
    "formats_worst": Figure(
        "ratio", 1.03, "the worst row of bench/formats, start of the job to its end: with Sluice / without"),
}
