"""fastsafetensors without a GPU: load_fastsafetensors.py THREADS FILE..."""
import sys

from fastsafetensors import SafeTensorsFileLoader, SingleGroup
from timed import Load

load = Load()
loader = SafeTensorsFileLoader(SingleGroup(), device="cpu", nogds=True, max_threads=int(sys.argv[1]))
loader.add_filenames({0: sys.argv[2:]})
buffer = loader.copy_files_to_device()
for name in buffer.key_to_rank_lidx:
    load.tensor(buffer.get_tensor(name))
load.end()
buffer.close()
loader.close()
