"""Run:ai's model streamer: stream_runai.py FILE..., with the settings in the environment."""
import sys

from runai_model_streamer import SafetensorsStreamer
from timed import Load

load = Load()
with SafetensorsStreamer() as streamer:
    streamer.stream_files(sys.argv[1:])
    for _, tensor in streamer.get_tensors():
        load.tensor(tensor)
load.end()
