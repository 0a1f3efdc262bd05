"""The functions whose frames lie between those of the job and PyTorch's.

Python does not count frames of a file whose path has "importlib" and "_bootstrap" in it when a warning's
`stacklevel` looks for the line to name. That is this folder's name, so that a warning names the line that
it would name without the adapter, and filters by module match it.
"""
