"""What differs between builds. `kernels build` writes another one, so that two versions fit into one process."""

NAMESPACE = "neuron_kernels"  # of the operators: torch.ops.<NAMESPACE>
VERSION = None  # then it is the installed package's
