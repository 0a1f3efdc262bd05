"""The loads that are measured: by which job, of which files, and which figure each gives."""
import dataclasses
import glob
import os

from bench.lib.place import BUILD, TOP

PYTHON = os.path.join(BUILD, "venv", "bin", "python3")
JOBS = os.path.join(TOP, "bench", "formats", "jobs")
LINK = 200  # MB/s
FAR, NEAR = "10 ms", "0.5 ms"
GROUNDS = {FAR: 10, NEAR: 0.5, "3 ms": 3, "2 ms": 2}  # latency of each request, in milliseconds


# What makes the data of rows: make_X.py FOLDER SIZE KIND..., and how much of it: 1.0 to 1.3 GB, and for a smoke test.
MAKERS = {"weights": (20, 1), "files": (8000, 400), "datasets": (8000, 400)}


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    job: str
    words: tuple  # the job's arguments; {files} are the data's, {folder} is where they are
    data: str  # the folder of it that its maker makes
    group: str
    needs: str = "safetensors"  # module
    figure: str = ""  # at 10 ms, unless the row says on which ground; of rows with the same figure the least
    grounds: tuple = (FAR, NEAR)
    ranks: int = 1
    settings: tuple = ()  # of the environment
    peer: bool = False  # a loader that was made for it: measured without Sluice only
    maker: str = "weights"  # of MAKERS

    def commands(self, mount):
        files = sorted(path for path in glob.glob(os.path.join(mount, "*")) if not path.endswith(".json"))
        out = []
        for rank in range(self.ranks):
            command = [PYTHON, os.path.join(JOBS, self.job)]
            for word in self.words:
                if word == "{files}":
                    command += files
                else:
                    command.append(word.format(folder=mount, rank=rank))
            out.append(command)
        return out


def safetensors(name, order, data="single", group="safetensors", **more):
    return Row(name, "load_safetensors.py", (order, "{files}"), data, group, **more)


def files(kind, needs="torch"):
    return Row(f"files, {kind}", "train_files.py", (kind, "{folder}"), "bmp", "files", needs,
               "files_any_first_epoch_link_share", grounds=("2 ms",), settings=(("OMP_NUM_THREADS", "1"),), maker="files")


def dataset(name, kind, needs, figure, data="", **more):
    return Row(name, "read_dataset.py", (kind, "{folder}"), data or kind, "datasets", needs, figure + "_link_share",
               settings=(("OMP_NUM_THREADS", "1"),), maker="datasets", **more)


SHARE = "load_safetensors_link_share"
ROWS = [
    safetensors("safetensors, header order", "header", figure=SHARE),
    safetensors("safetensors, by name", "name", figure=SHARE + "_by_name"),
    safetensors("safetensors, shuffled", "shuffled", figure=SHARE + "_shuffled"),
    safetensors("safetensors, 8 threads", "threads", figure=SHARE + "_threads"),
    safetensors("safetensors, 8 files", "header", "sharded", "ranks", figure=SHARE + "_sharded"),
    safetensors("safetensors, 4 ranks", "{rank}/4", group="ranks", ranks=4, figure=SHARE + "_tp4"),
    safetensors("safetensors, 1 of 4 ranks", "1/4", group="ranks", figure="load_safetensors_rank_link_share"),
    safetensors("safetensors, 1 of 4 ranks, shuffled", "1/4:shuffled", group="ranks",
                figure="load_safetensors_rank_shuffled_link_share"),
    Row("torch.load, mmap", "load_torch.py", ("mmap", "{files}"), "torch", "torch", "torch",
        "load_torch_link_share"),
    Row("torch.load, read", "load_torch.py", ("read", "{files}"), "torch", "torch", "torch",
        "load_torch_read_link_share"),
    Row("gguf", "load_gguf.py", ("{files}",), "gguf", "arrays", "gguf", "load_gguf_link_share"),
    Row("numpy, mapped", "load_numpy.py", ("{files}",), "numpy", "arrays", "numpy", "load_numpy_link_share"),
    Row("safetensors, header and a tensor", "open_header.py", ("{files}",), "single", "header",
        figure="load_header_only_bytes"),
    Row("transformers, 8 files", "load_transformers.py", ("{folder}",), "sharded", "transformers", "transformers",
        "load_transformers_speedup_far", grounds=("3 ms",)),
    safetensors("safetensors, beside peers", "header", group="peers", grounds=(FAR,)),
    Row("read at depth 32", "read_at_depth.py", ("32", "{files}"), "single", "peers", "numpy", peer=True,
        grounds=(FAR,)),
    Row("Run:ai streamer", "stream_runai.py", ("{files}",), "single", "peers", "runai_model_streamer",
        settings=(("RUNAI_STREAMER_CONCURRENCY", "32"),), peer=True, grounds=(FAR,)),
    Row("fastsafetensors", "load_fastsafetensors.py", ("32", "{files}"), "single", "peers", "fastsafetensors",
        peer=True, grounds=(FAR,)),
    files("list"), files("dict"), files("frame", "pandas"), files("rule"), files("csv"), files("subclass"),
    files("imagefolder", "datasets"), files("nested"),
    dataset("WebDataset, shards shuffled", "tar", "webdataset", "webdataset"),
    dataset("TFRecord, shards shuffled", "tfrecord", "torch", "tfrecord"),
    dataset("Parquet, in order", "parquet", "pyarrow", "parquet"),
    dataset("Parquet, row groups shuffled", "parquet-shuffled", "pyarrow", "parquet_shuffled", "parquet"),
    dataset("datasets, Arrow, shuffled", "arrow", "datasets", "arrow"),
    dataset("HDF5, shuffled", "hdf5", "h5py", "hdf5"),
    dataset("Zarr, shuffled", "zarr", "zarr", "zarr"),
    dataset("PyPI's lmdb, shuffled", "lmdb", "lmdb", "lmdb_wheel", grounds=("2 ms",)),
]
GROUPS = list(dict.fromkeys(row.group for row in ROWS))
