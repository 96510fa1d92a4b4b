//! What is left: errors that no more specific rule knows.

rules! { GENERAL:
    - Network Echo "communication": r"ncclUnhandledCudaError|NCCL error|ncclResult|DistBackendError|unhandled (?:cuda|system) error|NCCL Error \d|NET/OFI|libfabric|PML|\bbtl\b|(?i:\bgloo\b)|DistNetworkError|socket has timed out|Connection refused|ConnectionRefusedError|Connection timed out|ETIMEDOUT|failed to connect|RPC (?:error|failed)|StatusCode\.UNAVAILABLE|DEADLINE_EXCEEDED",
        "the communication between processes failed",
        "Look for a process that failed first. If there is none, check the network between the nodes, and run with NCCL_DEBUG=INFO.",
        ["ConnectionRefusedError: [Errno 111] Connection refused",
         "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1333, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1"],
        ["node01:1:9 [0] NCCL INFO Connected all rings"];
    - Code Cause "exception": r"^\s*(?:[A-Za-z_]\w*\.)+(?:Error|Exception)(?:: |:$|$)|^\s*(?:[A-Za-z_]\w*\.)+error: |^\s*[\w.]*[A-Z]\w*(?:Error|Exception|Failure|Fault|Expired|Exceeded|Timeout|NotFound|Unavailable|Conflict|Abort(?:ed)?|Violation)(?:\(\w*\))?(?:: |:$|$)|^\s*Exception(?:: |:$|$)|^(?:StopIteration|NoSuchKey|AccessDenied)\b|^panic: |thread '\S*' panicked at|^Exception in thread ..*. |^Fatal Python error: ",
        "the job's program ended with an exception",
        "Read the traceback above the line.",
        ["RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [1, 224, 224] at entry 1",
         "botocore.exceptions.ClientError: An error occurred (403) when calling the HeadObject operation: Forbidden", "Exception: the run failed",
         "thread '<unnamed>' panicked at src/lib.rs:12:5:",
         "mpi4py.MPI.Exception: MPI_ERR_RANK: invalid rank", "binascii.Error: Incorrect padding", "struct.error: unpack requires a buffer of 8 bytes"],
        ["the run raised a ValueError: it was caught", "train.py: error: no such mode", "wrote logs/main.error"];
    - Code Cause "thrown": r"^ *what\(\): +\S",
        "the job's program ended with an exception of C++",
        "Read the message, and the stack below it.",
        ["  what():  vector::_M_range_check: __n (which is 3) >= this->size() (which is 3)"],
        ["what() is the message"];
    - Slurm Symptom "slurm-error": r"^(?:srun|sbatch|slurmstepd(?:-\S+)?): (?:error|fatal): ",
        "Slurm reports an error",
        "Read what Slurm says, and check the job's resources and paths.",
        ["srun: error: Unable to create step for job 7: More processors requested than permitted"],
        ["srun: job 7 queued and waiting for resources"];
    - Unknown Hint "error-line": r"(?i)^(?:[\w./@-]+(?:\(\d+\))?: ?){0,4}(?:\[?(?:fatal|error|critical|severe)\]?)\b[ :\]]|^\s+error in (?:routine|subroutine) +\S|\b(?:fatal|critical) error\b|^(?:error|fatal|critical)\b|\[(?:error|fatal|critical)\]|- (?:ERROR|CRITICAL|FATAL) -|^\*\*\* .*(?:error|fail)|\bFailed to \w|\bfailed with\b|\b(?:cannot|could not|unable to|can't) \w|\bassert(?:ion)?\b.*\bfail|\bpanic\b|(?:^|[,;:.] ?)giving up\b|^Abort|^STOP\b|^ERROR STOP",
        "the log has a line that looks like an error",
        "Read the log around the line.",
        ["my-program: error: the mesh has no cells", "forrtl: severe (24): end-of-file during read, unit 5", "Failed to load the plugin foo", "solver: no convergence in step 12, giving up",
         "     Error in routine  read_cell (3):"],
        ["the errors were counted", "twice as fast without giving up accuracy"];
}
