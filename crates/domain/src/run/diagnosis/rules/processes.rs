//! Processes that died without a word.

rules! { PROCESSES:
    - HostMemory Cause "host-memory": r"DataLoader worker \(pid\(?s?\)? ?\d+\) is killed by signal: Killed|low on memory|cgroup out-of-memory handler|killed due to memory pressure|Memory cgroup out of memory|OutOfMemoryError: Task was killed|\bMemoryError\b|Cannot allocate memory|std::bad_alloc|Killed process \d+|OOM-killed|OOMKilled|DefaultCPUAllocator: (?:can't|not enough)|not enough memory: you tried to allocate|Unable to allocate \S+ [KMGT]i?B for an array",
        "the node, or the job's share of it, ran out of memory",
        "Request more memory, use fewer data loader workers, or load less data at once.",
        ["RuntimeError: DataLoader worker (pid 4211) is killed by signal: Killed. ",
         "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
         "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.5 GiB for an array with shape (1, 2) and data type float64",
         "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 1073741824 bytes."],
        ["torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"];
    - Code Death "crash": r"(?i:segmentation fault|SIGSEGV|bus error|SIGBUS|SIGILL|illegal instruction|SIGFPE|floating point exception|stack smashing detected|double free or corruption|free\(\): invalid|malloc\(\): |corrupted size vs|munmap_chunk\(\)|corrupted double-linked)|exitcode *: ?-(?:11|7|4|8)\b|return code = -(?:11|7|4|8)\b|died with <Signals\.SIG(?:SEGV|BUS|ILL|FPE)|terminated with code -(?:11|7|4|8)\b|^Fatal Python error: (?:Seg|Bus|Ill|Flo)|exited with (?:return |exit )?(?:code|status) (?:139|135|-11|-7)\b",
        "a process crashed in native code",
        "Run the rank with `python -X faulthandler`, and check that the versions of the native libraries fit each other.",
        ["srun: error: node01: task 3: Segmentation fault (core dumped)", "Fatal Python error: Segmentation fault",
         "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 0 (pid: 12) of binary: python",
         "  exitcode  : -7 (pid: 12)", "*** Process received signal ***: Signal: Segmentation fault (11)"],
        ["  exitcode  : -6 (pid: 12)"];
    - HostMemory Death "killed": r"exitcode *: ?-9\b|return code = -9\b|exited with (?:return |exit )?(?:code|status) (?:137|-9)\b|Signal 9 \(SIGKILL\)|got signal: 9\b|died with <Signals\.SIGKILL|terminated with code -9\b|signal SIGKILL|signal:? 9\b|task [\d,-]+: Killed|^Killed\b|: line \d+: +\d+ Killed\b|\bKilled +(?:python|torchrun|srun|accelerate)|: Killed$|KILLED BY SIGNAL: 9|terminated abruptly while the future was running|exit(?:ed)? (?:code|status):? ?(?:=|is)? ?137\b|SYSTEM_ERROR.*connection error code 2|died or was killed while executing a task|unexpected(?:ly)? (?:before finishing|exit|died)|exited unexpectedly|died unexpectedly|was sent SIGKILL|SIGKILL",
        "a process was killed without a word, which is mostly for its memory",
        "Look for the memory of the node at that time. Request more memory, or use fewer data loader workers.",
        ["ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 12) of binary: python",
         "srun: error: node01: task 3: Killed", "traceback : Signal 9 (SIGKILL) received by PID 4211",
         "mpirun noticed that process rank 3 with PID 4211 on node node02 exited on signal 9 (Killed).",
         "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",
         "RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly"],
        ["srun: error: node01: task 3: Exited with exit code 1"];
    - Code Echo "spawn-exit": r"process \d+ terminated with exit code [1-9]",
        "a process of the job ended with an exit code of its own",
        "Read what the process wrote before, on standard output too: it raised no exception.",
        ["torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with exit code 4"],
        ["torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL",
         "process 2 terminated with exit code 0"];
    - Unknown Echo "aborted": r"(?:^|: |\d )Aborted(?: +\(core dumped\))?(?:$| )|exitcode *: ?-6\b|return code = -6\b|Signal 6 \(SIGABRT\)|died with <Signals\.SIGABRT|signal 6\b|exited with (?:return |exit )?(?:code|status) (?:134|-6)\b",
        "a process ended itself",
        "Look for what the process wrote before.",
        ["srun: error: node01: task 2: Aborted (core dumped)", "  exitcode  : -6 (pid: 12)", "traceback : Signal 6 (SIGABRT) received by PID 48240"],
        ["the request was Aborted by its client"];
}
