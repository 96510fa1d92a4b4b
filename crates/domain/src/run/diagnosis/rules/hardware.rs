//! Faults of GPUs, networks and file systems.

rules! { HARDWARE:
    Infrastructure Slurm Cause "srun-step": r"^srun: error: (?:Unable to create step for job \d+: (?:Invalid generic resource|Job/step already completing|Duplicate job id|Invalid job credential|Unable to contact slurm controller|Socket timed out|Slurm backup controller|Zero Bytes were|Communication (?:connection|shutdown) failure|Message (?:send|receive) failure|Unexpected missing socket|Header lengths are longer)|Slurm job \d+ has expired)",
        "Slurm could not start the job's program on its nodes",
        "Run the job again. If this persists, report it to the cluster's administrators.",
        ["srun: error: Unable to create step for job 39: Invalid generic resource (gres) specification",
         "srun: error: Unable to create step for job 31: Job/step already completing or completed",
         "srun: error: Unable to create step for job 312: Duplicate job id",
         "srun: error: Unable to create step for job 999: Zero Bytes were transmitted or received",
         "srun: error: Unable to create step for job 968: Unexpected missing socket error",
         "srun: error: Slurm job 82 has expired"],
        ["srun: error: Unable to create step for job 7: Requested node configuration is not available",
         "srun: error: Unable to create step for job 7: More processors requested than permitted"];
    Infrastructure Slurm Cause "ray-start": r"The current node timed out during startup\. This could happen because some of the raylet failed",
        "Ray did not start on a node within its 30 seconds",
        "Run the job again. If this persists, check the load of the node and its file systems.",
        ["Exception: The current node timed out during startup. This could happen because some of the raylet failed to startup or the GCS has become overloaded."],
        ["Error: Timed out waiting for other nodes to start."];
    Infrastructure Network Echo "nccl": r"Watchdog caught collective operation timeout|ncclRemoteError|ncclSystemError|ncclInternalError|NCCL.*(?:unhandled system error|remote process exited or there was a network error)|NCCL WARN .*(?:timed? ?out|Connection (?:closed|reset)|ibv_\w+ failed|Cuda failure)|NCCL.*communicator was aborted",
        "NCCL lost its connection between the GPUs",
        "Look for a rank that failed or stopped first. If there is none, check the network between the nodes, and run with NCCL_DEBUG=INFO.",
        ["[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800123 milliseconds before timing out.",
         "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
         "node02:171:220 [3] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
         "RuntimeError: NCCL communicator was aborted on rank 1."],
        ["NCCL INFO NCCL_ASYNC_ERROR_HANDLING set by environment to 1",
         "node01:1:1 [0] NCCL INFO Using network IB", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"];
    Infrastructure Gpu Cause "cuda-initialisation": r"cuInit\b.*fail|CUDA (?:driver )?initialization.*(?:error|failed)|CUDA driver version is insufficient|no CUDA-capable device|NVIDIA driver.*too old|No CUDA GPUs are available|CUDA unknown error|system not yet initialized|devices are busy or unavailable|nvidia-container-cli: initialization error",
        "CUDA could not be initialized on the node",
        "Exclude the node, and report it. If all nodes show this, the driver is too old for the CUDA version of the image.",
        ["RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
         "cuInit(0) failed with 802", "RuntimeError: No CUDA GPUs are available",
         "The NVIDIA driver on your system is too old (found version 11040).",
         "CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up environment",
         "RuntimeError: CUDA error: no CUDA-capable device is detected",
         "CUDA driver version is insufficient for CUDA runtime version",
         "RuntimeError: CUDA error: system not yet initialized",
         "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"],
        ["CUDA initialization took 3.2 s"];
    Infrastructure Gpu Cause "cuda-unavailable": r"torch\.cuda\.is_available\(\)\s*(?:is|returned|returns|==?|:|->)?\s*False",
        "the node has no working GPU for the job",
        "Check that the job requests GPUs, that the program was built for CUDA, and that the node's GPUs work.",
        ["check: torch.cuda.is_available() returned False"],
        ["if torch.cuda.is_available(): use_amp = False"];
    Infrastructure Gpu Cause "gpu-lost": r"Unable to determine the device handle for GPU|GPU.*(?:fallen off the bus|is lost)|nvidia-smi has failed because it couldn't communicate",
        "a GPU of the node has failed",
        "Exclude the node, and report it.",
        ["Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error",
         "NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.", "Unable to determine the device handle for GPU0: GPU is lost"],
        ["GPU pretrained weights file not found: resnet50.pth"];
    Infrastructure Gpu Cause "xid": r"NVRM: Xid \(PCI:[0-9A-Fa-f:.]+\): (?:48|5[678]|6[1-4]|6[89]|7[349]|92|9[45]|109|110|119|12[0-5]|13[67]|14[0-9])\b",
        "the GPU driver reported a hardware fault",
        "Exclude the node, and report the Xid.",
        ["[12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
         "NVRM: Xid (PCI:0000:86:00): 48, pid='<unknown>', DBE (double bit error)", "NVRM: Xid (PCI:0000:86:00): 119, Timeout waiting for RPC"],
        // A program's own invalid memory access causes 13, 31, 43 and 45.
        ["NVRM: Xid (PCI:0000:3b:00): 31, pid=1, MMU Fault", "NVRM: Xid (PCI:0000:3b:00): 13, Graphics Exception"];
    Infrastructure Gpu Cause "ecc": r"(?i:uncorrectable ECC error|cudaErrorECCUncorrectable|double[- ]bit ECC)",
        "the GPU's memory is faulty",
        "Exclude the node, and report the GPU.",
        ["RuntimeError: CUDA error: uncorrectable ECC error encountered"],
        ["checking second error handler", "Volatile ECC errors: 0"];
    Infrastructure Gpu Cause "gpu-temperature": r"(?i:GPU.*(?:thermal shutdown|temperature.*(?:exceeded|critical|shut ?down)))",
        "a GPU overheated",
        "Exclude the node, and report it.",
        ["GPU 3 temperature 95C exceeded the shutdown threshold"],
        ["GPU 0 temperature: 45C", "| N/A   GPU 31C temperature ok |"];
    Infrastructure Network Symptom "infiniband": r"(?i:transport retry counter exceeded|IBV_WC_RETRY_EXC_ERR|RDMA_CM_EVENT_\w*ERROR|(?:mlx\d+_\d+|InfiniBand|ib\d+|RDMA).{0,60}(?:link (?:is )?down|port (?:is )?down|lost carrier|fatal error|device error|async(?:hronous)? (?:fatal )?event.*error))|NET/IB\s*:.*Got completion.*error",
        "the network between the nodes failed",
        "Look for a rank that failed first. If there is none, check the InfiniBand ports of the nodes, and exclude the node that the line names.",
        ["mlx5_0: link down", "node01 kernel: mlx5_core 0000:5e:00.0: ib0: link is down",
         "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with error 12, opcode 0, len 0, vendor err 129",
         "RDMA transport retry counter exceeded", "InfiniBand device error on port 1"],
        ["NET/IB : Using [0]mlx5_0:1/IB", "RDMA error handling enabled"];
    Infrastructure HostMemory Cause "oom-killer": r"Out of memory: Killed process|invoked oom-killer|oom-kill:constraint=CONSTRAINT_NONE",
        "the node ran out of memory and its kernel killed processes",
        "Use less memory of the node: fewer data loader workers, or more nodes. If another job used it, request the whole node.",
        ["kernel: Out of memory: Killed process 4211 (python) total-vm:93312kB",
         "python invoked oom-killer: gfp_mask=0x100cca, order=0"],
        [];
    Infrastructure Storage Cause "file-system": r"Stale file handle|\bESTALE\b|: Input/output error|\[Errno 5\]|Transport endpoint is not connected|Cannot send after transport endpoint shutdown",
        "the shared file system failed",
        "Run the job again. If this persists, report the file system.",
        ["OSError: [Errno 116] Stale file handle: '/lustre/a/b.tar'", "cat: /lustre/a: Input/output error",
         "OSError: [Errno 5] Input/output error", "ls: cannot access '/lustre': Cannot send after transport endpoint shutdown"],
        [];
}
