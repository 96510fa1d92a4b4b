"""A program of several processes for the tests of launchers. It adds up all ranks, fails in rank 1 (0 if that is
the only one), or goes on until it is ended."""

import os
import sys
import time


def torch():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    found = dist.get_rank(), dist.get_world_size(), int(total.item())
    # PyTorch 1 may abort at an exit with open connections.
    dist.barrier()
    dist.destroy_process_group()
    return found


def mpi():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    return world.Get_rank(), world.Get_size(), world.allreduce(world.Get_rank())


def alone():
    rank = int(os.environ.get("NODE_RANK", "0"))
    return rank, int(os.environ.get("WORLD_SIZE", "1")), rank


def ray():
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray.init(logging_level="ERROR")

    @ray.remote(num_cpus=1)
    def node():
        return ray.util.get_node_ip_address()

    alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    # A node that is slow to start a process would leave its work to the others.
    on = [NodeAffinitySchedulingStrategy(node_id=id, soft=False) for id in alive]
    used = set(ray.get([node.options(scheduling_strategy=strategy).remote() for strategy in on]))
    return 1, len(alive), len(used)


rank, size, total = {"torch": torch, "mpi": mpi, "alone": alone, "ray": ray}[sys.argv[1]]()
print(f"rank {rank} of {size}: {total}", flush=True)
if sys.argv[2] == "fails" and rank == min(1, size - 1):
    # MPI would wait for the others at a usual end.
    os._exit(7) if sys.argv[1] == "mpi" else sys.exit(7)
if sys.argv[2] != "works":
    time.sleep(600)
