"""Fashion-MNIST as the trainings here have it: a folder of a folder a label, of files of one image each,
whatever follows the pixels."""
import os

SIDE = 28


def samples_of(root):
    """(path, label) of all images, in the order of their numbers."""
    return [(os.path.join(root, label, name), int(label))
            for label in sorted(os.listdir(root)) if label.isdigit()
            for name in sorted(os.listdir(os.path.join(root, label)))]
