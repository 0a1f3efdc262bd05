"""The figures of importance and substitution (iCache), as figure_table.py has the others."""
from bench.lib.figure import Figure

IMPORTANCE = {
    "importance_live_h": Figure(
        "share", None, "live: 12,000 files of 20 KB, memory for 30 %, four epochs of which two select: H hits /"
        " all requests"),
    "importance_live_exact": Figure("share", None, "the same: L-samples from memory, themselves"),
    "importance_live_substituted": Figure("share", None, "the same: substituted by others from memory"),
    "icache_epoch_speedup_default": Figure(
        "ratio", 2.3, "12,000 images of 100 KB, 2 ms, 200 MB/s, 20 % in memory, 40 ms of computing a"
        " batch: epochs of Default / those of the job under Sluice, iis and substitution", True),
    "icache_epoch_speedup_base": Figure("ratio", 2.3, "the same over Base", True),
    "icache_epoch_speedup_quiver": Figure("ratio", 2.0, "the same over Quiver", True),
    "icache_epoch_speedup_coordl": Figure("ratio", 1.9, "the same over CoorDL", True),
    "icache_epoch_speedup_ilfu": Figure("ratio", 1.6, "the same over iLFU", True),
    "icache_epoch_speedup_exact": Figure(
        "ratio", None, "the same over Sluice without any opt-in: what these add"),
    "icache_epoch_speedup_iis_only": Figure(
        "ratio", None, "the same over Sluice with iis alone: what substitution adds"),
    "icache_epoch_speedup_base_prefetched": Figure(
        "ratio", None, "that job under Sluice, which fetches ahead for both: every sample, LRU, of which Base's share"
        " is computed / iis and substitution"),
    "icache_epoch_speedup_iis_prefetched": Figure(
        "ratio", None, "the same over iis and LRU: Base with I/O-oriented importance sampling (+IIS)"),
    "icache_epoch_speedup_quiver_prefetched": Figure(
        "ratio", None, "the same over every sample, retained by the policy quiver: Quiver without its substitution"),
    "icache_epoch_speedup_coordl_prefetched": Figure(
        "ratio", None, "the same over every sample, retained by the policy minio: CoorDL's cache"),
    "icache_epoch_speedup_ilfu_prefetched": Figure("ratio", None, "the same over iis and LFU: iLFU"),
    "icache_live_hit_20": Figure(
        "ratio", 0.37, "live, that job where 2,000 requests a second are answered at 500 MB/s, packages of ten samples on"
        " the same storage, memory for 20 %, at most 12 % substituted: samples that were retained, or that a package"
        " brought for an earlier request / samples of the last six of 13 epochs", True),
    "icache_live_hit_40": Figure("ratio", 0.55, "the same, 40 %", True),
    "icache_live_hit_60": Figure("ratio", 0.69, "the same, 60 %", True),
    "icache_live_hit_80": Figure("ratio", 0.83, "the same, 80 %", True),
    "icache_live_substituted_20": Figure("share", 0.12, "of icache_live_hit_20, by a substitute; of all samples"),
    "icache_live_package_share_20": Figure("share", None, "there: bytes of packages / bytes read from storage"),
    "icache_live_packages_over_none": Figure(
        "ratio", 1.35, "there, substitution unbounded as published, memory for 20 %: epochs without packages / with them"
        " (published, HC to All: 1.35)", True),
    "icache_live_packages_over_none_12": Figure("ratio", 1.08, "the same, at most 12 % substituted", True),
    "icache_live_packages_over_none_bound": Figure(
        "ratio", None, "there: epochs without packages / the same where the mount limits nothing: what saving requests can"
        " save on these processors"),
    "icache_live_packages_over_none_500": Figure(
        "ratio", None, "as icache_live_packages_over_none, but 500 requests a second"),
    "bytes_over_bound_iis": Figure(
        "ratio", 1.05, "there, iis alone, memory for 20 %: bytes read from storage / those of the selected samples that"
        " this memory cannot hold"),
    "icache_over_default_requests": Figure(
        "ratio", 2.3, "there, with the same prefetcher: every sample, retained by LRU / iis, packages and unbounded"
        " substitution", True),
    "icache_over_quiver_requests": Figure("ratio", 2.0, "the same over policy quiver, without substitution", True),
    "icache_over_coordl_requests": Figure("ratio", 1.9, "the same over policy minio", True),
    "icache_over_ilfu_requests": Figure("ratio", 1.6, "the same over iis and policy lfu", True),
    "icache_ablation_iis": Figure("ratio", 1.4, "the same job: Base / +IIS, as published", True),
    "icache_ablation_hc": Figure("ratio", 1.7, "Base / +HC, as published", True),
    "icache_ablation_packages": Figure(
        "ratio", None, "Base / iCache as published: packages are read while it computes"),
    "icache_ablation_all": Figure("ratio", 2.3, "Base / the job under Sluice", True),
    "icache_io_speedup_default": Figure(
        "ratio", 2.4, "time that the training waits for batches, Default / Sluice, mean over 40 and"
        " 105 ms of computing a batch", True),
    "quiver_io_speedup_default": Figure("ratio", None, "the same of Quiver (paper: 1.2)"),
    "coordl_io_speedup_default": Figure("ratio", None, "the same of CoorDL (paper: 1.3)"),
    "ilfu_io_speedup_default": Figure("ratio", None, "the same of iLFU (paper: 1.4)"),
    "icache_over_oracle": Figure(
        "ratio", 1.15, "105 ms of computing a batch: epochs under Sluice / with all in memory"),
    "icache_top1_loss_points": Figure(
        "points", 0.5, "top-1 of a small ShuffleNet and a small ResNet on Fashion-MNIST, 10 epochs of all"
        " samples - of iis and substitution, percent; mean of both, by seed"),
    "icache_top1_full": Figure("percent", None, "top-1 of the trainings with all samples"),
    "icache_top1_substituted": Figure(
        "share", 0.12, "substituted samples of the others / samples trained"),
    "hlist_report_overhead": Figure(
        "ratio", 1.03, "epochs of such a training over files in memory: losses observed / not, both under"
        " Sluice"),
    "icache_multi_job": Figure(
        "ratio", 0.91, "simulated: two trainings that share what is in memory, where what the other is known to"
        " read stays, then what matters to both: their time / the better of keeping what matters to one of them"),
    "icache_multi_job_importance": Figure(
        "ratio", None, "the same, where what matters to both stays, as published, and no order is known"),
    "icache_multi_job_probed": Figure(
        "ratio", None, "that, where each epoch begins with 20 uncached batches, as published"),
    "icache_multi_job_orders": Figure(
        "ratio", None, "as icache_multi_job, over the better of keeping, after what the other is known to read,"
        " what matters to one of them"),
    "icache_multi_job_known": Figure(
        "ratio", None, "as icache_multi_job, over keeping what is known to be read, and else anybody"),
    "icache_multi_job_first": Figure(
        "ratio", None, "simulated: both jobs' time where what matters to the first stays, which computes"
        " less / where what matters to both does, and no order is known (paper: 1.1)"),
    "icache_multi_job_second": Figure("ratio", None, "the same of the second (paper: 1.2)"),
    "icache_two_jobs_time": Figure(
        "ratio", None, "two such trainings at once under Sluice, iis and substitution, memory for 20 %: their later"
        " epochs / the same by importance alone (SLUICE_POLICY=shade)"),
    "icache_two_jobs_bytes": Figure("ratio", None, "bytes that they read from storage, likewise"),
    "icache_workers_2": Figure(
        "ratio", None, "epochs of Default / under Sluice, as icache_epoch_speedup_default, with two workers"
        " (paper: 3.9)"),
    "icache_workers_16": Figure("ratio", None, "the same with sixteen (paper: 1.2)"),
    "icache_stall_during_swap_us": Figure(
        "us", 200, "longest request to iCache, processor time, while 1.28 million retained samples are sorted"
        " by a new list"),
    "icache_select_ms": Figure(
        "ms", 250, "the question which of 1.28 million samples an epoch fetches, processor time of"
        " a thread for that alone"),
    "icache_begin_ms": Figure(
        "ms", 50, "the beginning of that epoch, processor time of the optimizer's one thread"),
    "icache_begin_ranks_ms": Figure("ms", 50, "the same of each of eight ranks, the longest"),
    "icache_serve_ms": Figure(
        "ms", 50, "the decision what 16,384 of its positions read, on that thread too, the longest of an epoch"),
    "icache_read_ms": Figure(
        "ms", 50, "what is worth retaining, after each of 16,384 of its samples was read, the longest, likewise"),
}
