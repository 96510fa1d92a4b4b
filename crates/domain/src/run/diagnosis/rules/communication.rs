//! Faults of NCCL, MPI and the network: which of them explain a failure, and which a failed process causes.

rules! { COMMUNICATION:
    - Code Cause "nccl-usage": r"Duplicate GPU detected|NCCL.*(?:version|plugin).*mismatch|Mismatched NCCL version|(?i:invalid usage)|ncclInvalidUsage|ncclInvalidArgument|device_ids.*out of range|using GPU \d+ (?:to perform barrier )?as device used by this process is currently unknown.*error",
        "the ranks use NCCL in a way that cannot work",
        "Give each rank a GPU of its own (`torch.cuda.set_device(local_rank)`), and the same version of NCCL.",
        ["node01:1:9 [0] init.cc:795 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"],
        ["node01:1:9 [0] NCCL INFO NCCL version 2.18"];
    - GpuMemory Cause "nccl-out-of-memory": r"NCCL WARN (?:Cuda failure|Failed to CUDA (?:calloc|malloc)).*out of memory|Cuda failure (?:2 )?'out of memory'|NCCL WARN Cuda failure 'out of memory'",
        "NCCL found no memory on the GPU",
        "Leave some GPU memory free, and check that no other process uses the GPU.",
        ["node01:1:9 [0] include/alloc.h:48 NCCL WARN Cuda failure 'out of memory'"],
        ["node01:1:9 [0] NCCL WARN Cuda failure 'invalid argument'"];
    - HostMemory Cause "nccl-shared-memory": r"NCCL WARN (?:Error (?:while|:) (?:creating|attaching|sharing).*shared memory|.*No space left on device|posix_fallocate)|unable to (?:open|create) shared memory (?:object|file)|/dev/shm.*(?:No space|cannot)",
        "NCCL or the data loaders found no shared memory",
        "Mount more shared memory at /dev/shm.",
        ["node01:1:9 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-lpFuxV to 9637892 bytes, error: No space left on device (28)",
         "node01:1:9 [3] include/shm.h:28 NCCL WARN Error while creating shared memory segment nccl-shm-recv-1 (size 9637888)"],
        ["node01:1:9 [0] NCCL INFO Using /dev/shm/nccl-x"];
    - Network Cause "no-interface": r"NCCL WARN (?:Bootstrap : )?[Nn]o (?:socket )?interface found|Failed to find (?:a )?(?:suitable|reverse path)|makeDeviceForHostname\(\)|Unable to find (?:address|interface)|Unable to resolve hostname|(?i:no route to host|network is unreachable)|gaierror|Name or service not known|Temporary failure in name resolution|NameResolutionError|getaddrinfo",
        "a process found no way through the network",
        "Set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to the interface between the nodes, and check host names and the access to the Internet.",
        ["node01:1:9 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
         "socket.gaierror: [Errno -3] Temporary failure in name resolution",
         "RuntimeError: [enforce fail at /opt/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth9"],
        ["node01:1:9 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>"];
    - Network Cause "port-in-use": r"EADDRINUSE|(?i:address already in use)|error while attempting to bind on address|port \d+ is (?:already )?(?:in use|taken|occupied)",
        "another process has the port",
        "Run the job again, or use a port that the service chooses.",
        ["RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
         "OSError: [Errno 98] Address already in use"],
        ["The server socket is listening on port 29500"];
    - Network Symptom "mpi": r"MPICH ERROR|Fatal error in (?:P?MPI_|internal_)|^Abort\(-?\d+\)(?: on node \d+)? \(rank \d+ in comm \d+\): (?:[^a]|a[^p])|\*\*\* (?:An error occurred in |MPI_ERR_)",
        "a call of MPI failed",
        "Look for a process that failed first. If there is none, check that the program and the launcher have the same MPI, built for the cluster.",
        ["MPICH ERROR [Rank 0] [job id 7.1] [node01] - Abort(-1) (rank 0 in comm 0): MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but GTL library is not linked",
         "[node17:53890] *** An error occurred in MPI_Bcast"],
        ["application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0",
         "Abort(1) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0"];
    - Network Cause "ucx": r"UCX +ERROR",
        "the communication library UCX failed",
        "Check that UCX was built for the GPUs and the network of the nodes, and that the program sets its GPU before it communicates.",
        ["[1581715406.914568] [node12:42393:2]    cuda_ipc_md.c:62   UCX  ERROR cuCtxGetDevice(&cu_device) is failed. ret:invalid device context"],
        ["[1581715406.914528] [node12:42393:2] mpool.c:200  UCX  DEBUG mpool ucp_rkeys: allocated chunk"];
    - Code Death "watchdog": r"watchdog thread terminated with exception: .*(?:CUDA|HIP) error",
        "NCCL's watchdog met an error of the GPU that another operation had caused",
        "Run with CUDA_LAUNCH_BLOCKING=1 to find the operation. If it happens on one GPU only, exclude its node.",
        ["[rank0]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered"],
        ["RuntimeError: CUDA error: an illegal memory access was encountered"];
    - Network Cause "nccl-internal": r"NCCL WARN (?:Error :|Cuda failure|Mismatched|Invalid|Failed to (?:open|load|find|init|create)|Could not find|No NUMA|Topology|Bad|Assert|Unknown|Missing transport)",
        "NCCL could not set up its communication",
        "Read what NCCL says; NCCL_DEBUG=INFO shows how it sees the node. Another version of NCCL, or NCCL_P2P_DISABLE=1, may help.",
        ["node01:64:129 [1] graph/rings.cc:29 NCCL WARN Error : ring 1 does not loop back to start (3 != 1)"],
        ["node01:1:9 [0] misc/socket.cc:540 NCCL WARN Net : Connect to 10.0.0.2<41234> failed : Connection refused"];
    - Network Symptom "nccl-warning": r"\bNCCL WARN\b",
        "NCCL met an error",
        "Look for a rank that failed first. If there is none, read what NCCL says of the node, the network interface or the GPU.",
        ["node01:1:9 [0] misc/socket.cc:540 NCCL WARN Net : Connect to 10.0.0.2<41234> failed : Connection refused"],
        ["node01:1:9 [0] NCCL INFO Connected all rings"];
}
