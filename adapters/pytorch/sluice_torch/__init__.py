"""Publishes to Sluice what PyTorch's DataLoader reads next; see docs/pytorch.md.

  hook      when torch.utils.data is imported, has `patches` change it
  loader    epochs: predicts the order that a loader will draw, and compares it with the draws
  orders    what each of PyTorch's samplers will draw, from a copy of its generator's state
  libraries the same of samplers of torchdata and accelerate
  importlib_bootstrap.fetcher  brackets each dataset[i] in the process that reads it
  datasets  a dataset's name, and its samples' locations where it exposes them
  learning  locations learned from the first samples, by rules over what a dataset has
  columns, tree, rules, guesses  what a dataset has, how it is nested, what follows from it; what is taken for granted
  importance  losses, and epochs that select samples by them (SLUICE_IMPORTANCE)
  turns, ranks  how many samples ranks fetch then, equally many on all of them
  collector leaves the garbage collector's counts as they were before the adapter was loaded
  settings  settings from the environment

Two rules hold everywhere: the adapter draws no random number of the job and touches none of its
generators, and none of its exceptions reaches the job (settings.guarded).
"""
