"""Tells Sluice what PyTorch's DataLoader reads next; see docs/pytorch.md.

  hook      waits for torch.utils.data to be imported, then has `loader` patch it
  loader    epochs: which order a loader will take, compared with what it takes
  orders    what each of PyTorch's samplers will draw, from a copy of its generator's state
  fetcher   brackets each dataset[i] in the process that reads it
  datasets  what a dataset is called, and where its samples are when it says so
  importance  losses, and epochs that fetch by them (SLUICE_IMPORTANCE)
  turns, ranks  how many samples ranks fetch then, which is the same for all of them
  settings  what the environment says

Two rules hold everywhere: no random number of the job is drawn and none of its generators
touched, and no exception of ours reaches the job (settings.guarded).
"""
