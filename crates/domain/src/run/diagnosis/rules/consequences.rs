//! Lines that follow from a failure elsewhere: they are never blamed.

rules! { CONSEQUENCES:
    - Network Echo "collective-timeout": r"Watchdog caught collective operation timeout|Some NCCL operations have failed or timed out|take (?:the )?(?:entire )?process down|taking the entire process down|Timeout at NCCL work|failure detected by watchdog at work sequence|Exception \(either an error or timeout\) detected by watchdog|watchdog (?:got stuck|thread terminated with exception: (?:\[Rank|NCCL))|First PG on this rank that detected|Received a (?:dump signal|timeout signal) (?:due to|from)|Heartbeat monitor timed out|Could not acquire GIL within|\bWorkNCCL\(|collective operation timeout|Process group watchdog thread terminated with exception: (?:\[Rank \d+\] )?(?:Watchdog|NCCL)|Timed out waiting \d+ms for (?:recv|send) operation|Detected mismatch between collectives|Observed flight recorder dump signal",
        "ranks waited in a collective operation for one that had failed or hung", "",
        ["[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600091 milliseconds before timing out.",
         "[E ProcessGroupNCCL.cpp:475] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
         "[E ProcessGroupNCCL.cpp:480] To avoid data inconsistency, we are taking the entire process down.",
         "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete",
         "[rank2]:[E509 11:20:07.400000001 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 12, last enqueued NCCL work: 12, last completed NCCL work: 11."],
        ["[rank0]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered"];
    - Network Consequence "peer-closed": r"(?i:connection (?:was )?(?:closed|reset) by (?:remote )?peer|broken ?pipe|remote process exited|ncclRemoteError|recvValue failed|sendBytes failed|Failed to recv, got 0 bytes|socket closed|peer closed|Connection lost to|NCCL communicator was aborted|TCPStore server has shut down|Failed to check the \S+ flag on TCPStore|ConnectionResetError|connection to the (?:C10d )?store (?:was|has been) lost|successfully reached monitoredBarrier, but received errors)|^(?:EOFError|ConnectionAbortedError)\b|fi_\w+.*connection reset",
        "another process had ended before", "",
        ["RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:31221",
         "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version 2.18.1",
         "BrokenPipeError: [Errno 32] Broken pipe",
         "RuntimeError: Rank 5 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
         "[W TCPStore.cpp:106] sendBytes failed on SocketImpl(fd=3): Broken pipe",
         "node01:1:9 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node02<41234>"],
        ["ConnectionRefusedError: [Errno 111] Connection refused", "[Rank 0]: Rank 5 failed to pass monitoredBarrier in 1800000 ms"];
    - Network Consequence "jax-stopped": r"Polled an error from coordination service|JAX distributed service detected fatal errors|CoordinationService/",
        "JAX ended its processes after one of them had died", "",
        ["E0926 17:26:32.075402  157988 coordination_service_agent.cc:332] Polled an error from coordination service (this can be an error from this or another task)."],
        ["jax.errors.JaxRuntimeError: INTERNAL: a kernel failed"];
    - Network Echo "barrier-timeout": r"(?i:(?:monitored)?barrier.*(?:timed? ?out|failed|did not)|failed to pass monitoredBarrier|Rank \d+ (?:timed out|failed to pass monitoredBarrier)|(?:wait|timeout) (?:timeout )?after \d+ ?ms|Timed out after \d+ seconds waiting for clients|waiting for (?:the )?(?:key|clients?).*(?:timed? ?out|timeout)|(?:Socket|Store|recv) timeout$|DistStoreError|timed out in store-based barrier|(?:clients joined|worker_count=\d+))",
        "processes waited for one that did not come", "",
        ["RuntimeError: [Rank 0]: Ranks 3 failed to pass monitoredBarrier in 1800000 ms",
         "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/4 clients joined.",
         "RuntimeError: Timed out initializing process group in store based barrier on rank: 1, for key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)",
         "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//0"],
        ["TimeoutError: the data set did not answer"];
    - Unknown Consequence "launcher-summary": r"ChildFailedError|CalledProcessError: .* returned non-zero|returned non-zero exit status|terminated with code [12]\b|\bexitcode *: ?(?:1|2|-15|143)\b|^(?:Root Cause|Failures:|traceback : To enable|error_file:)|(?i:Root Cause \(first observed failure\))|<NO_OTHER_FAILURES>|<N/A>|exits with return code = [12]\b|Killing subprocess \d+|exited with (?:return |exit )?(?:code|status) (?:1|2|15|143)\b|Process \d+ exits with|Main process exited|One or more child processes|torch\.distributed\.(?:run|launch|elastic).* failed|launcher.*: failed|non-zero (?:return|exit) ?code|job failed with exit code|worker process(?:es)? failed|\(raise_error|ProcessRaisedException|-- Process \d+ terminated with the following error|exited with code 1\b",
        "the launcher sums up that a process failed", "",
        ["torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
         "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 2 (pid: 4211) of binary: /usr/bin/python",
         "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' returned non-zero exit status 1.",
         "  exitcode  : 1 (pid: 4211)",
         "[2023-05-01 12:00:00,000] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', 'train.py'] exits with return code = 1",
         "torch.multiprocessing.spawn.ProcessRaisedException: "],
        ["ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 12) of binary: python"];
    - Slurm Consequence "step-ended": r"srun: error: .*\btasks? [\d,-]+: (?:Exited with exit code|Terminated)|srun: (?:Job step aborted|Terminating (?:job step|StepId)|forcing job termination|launch/slurm: )|srun: error: .*\bExited with exit code|error: \*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+(?: DUE TO TASK FAILURE| DUE to SIGNAL \w+)? \*\*\*|srun: Force Terminated|srun: error: Timed out waiting for job step to complete|^Terminated$|Failed to invoke spank plugin stack|spank: required plugin \S+: \w+\(\) failed|pyxis: child \d+ failed with error code|pyxis: printing enroot log file|container was not started successfully by another|error: task_\w+ \d+: \w+ failed|^scancel: error: Kill job error on job (?:step )?id \S+: (?:Invalid job id specified|Job/step already completing or completed)",
        "Slurm ended the step after one of its tasks had failed", "",
        ["scancel: error: Kill job error on job step id 54: Invalid job id specified",
         "srun: error: node01: task 0: Exited with exit code 1", "srun: error: node02: tasks 4-7: Terminated",
         "slurmstepd: error: *** STEP 123.0 ON node01 CANCELLED AT 2024-05-01T12:00:00 ***",
         "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
         "slurmstepd-node01: error: pyxis: child 4032 failed with error code: 1"],
        ["srun: error: node01: task 3: Killed", "slurmstepd: error: *** JOB 7 ON node01 CANCELLED AT 2024-05-01T12:00:00 DUE TO TIME LIMIT ***"];
    - Unknown Consequence "signalled": r"(?:closing signal|death signal,?|got signal:|received (?:a )?(?:termination )?signal) ?:? ?(?:SIG)?(?:TERM|INT|HUP|15|2\b)|Unable to shutdown process|SignalException: Process \d+ got signal: (?:15|2|1)\b|SIGTERM received|(?:Caught|Received|received|caught) (?:signal )?SIG(?:TERM|INT)|^KeyboardInterrupt\b|^SystemExit\b|^(?:asyncio\.exceptions\.)?CancelledError\b|Signal 15 \(SIGTERM\)|died with <Signals\.SIG(?:TERM|INT|HUP)|Signal code: *(?:\(-?\d+\))?$",
        "a signal asked the process to end", "",
        ["WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4212 closing signal SIGTERM",
         "torch.distributed.elastic.multiprocessing.api.SignalException: Process 100 got signal: 15", "KeyboardInterrupt"],
        ["Signal 9 (SIGKILL) received by PID 4211"];
    - Unknown Consequence "mpi-ended": r"MPI_ABORT (?:was )?(?:invoked|called)|application called MPI_Abort|Primary job terminated normally, but|(?:mpirun|mpiexec|prterun|orterun)(?: has)?(?: detected| noticed)? that (?:one or more processes|process rank \d+)(?: with PID \d+)?.* (?:exited with|exiting improperly|on signal 6)|non-zero (?:status|exit code)\. *Per user-direction|NOTE: invoking MPI_ABORT causes|EXIT CODE: 1\b|exiting without calling .?finalize|(?:KILLED BY SIGNAL|EXIT STRING).*: 15|Per user-direction, the job has been aborted|PMI_Abort|=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "MPI ended all processes after one of them had failed", "",
        ["MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD", "mpirun detected that one or more processes exited with non-zero status, thus causing"],
        ["mpirun noticed that process rank 3 with PID 4211 on node node02 exited on signal 9 (Killed)."];
    - Unknown Consequence "engine-dead": r"Engine core initialization failed|EngineDeadError|EngineCore (?:encountered (?:an issue|a fatal error)|failed to start|hit an exception)|[Ss]ee (?:the )?(?:root cause|stack trace)s? (?:above|\(above\))|Worker proc \S+ died unexpectedly|WorkerProc (?:initialization failed|failed to start|hit an exception)|Worker failed with error|Engine process failed to start|AsyncEngineDeadError|Background loop has errored|AsyncLLM output_handler failed|(?:MQ|AsyncLLM)\S* .*(?:is dead|terminated)|Engine loop has died|engine is dead|shutting down (?:engine|MessageQueue|FastAPI)|Failed core proc\(s\)|killing local vLLM worker processes|Received a SIGQUIT from a child|child process.*fail|Scheduler hit an exception|Initialization failed\. (?:warmup|Rank \d)|Rank \d+ scheduler is dead|Please check the stack trace|DataParallel Engine .*died|Engine background task failed|Parallel(?:ism)? \w+ died|Child process \S+ failed",
        "a process of the model server reports that another one had failed", "",
        ["RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}",
         "ERROR 07-20 10:00:00 [core.py:586] EngineCore failed to start.",
         "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
         "RuntimeError: Worker failed with error 'CUDA out of memory', please check the stack trace above for the root cause"],
        ["ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache"];
    - Unknown Echo "ray-worker-died": r"actor is dead because its worker process has died",
        "Ray lost the process of an actor",
        "Look for what Ray's own log says of the process: it may have been killed for its memory.",
        ["The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force was called, (3) SIGSEGV."],
        ["(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker exit type: SYSTEM_ERROR"];
    - Unknown Consequence "ray-wrapper": r"RayTaskError|failed to import on the worker|died because of an error raised in its creation task|The actor died because|ActorDiedError|RayActorError|(?:Actor|Task|Trial) \S* ?(?:failed|errored|died)|Worker exit type: (?:USER_ERROR|INTENDED)|TuneError|TrainingFailedError|RayServeException|(?:lease|task) .* failed|A fatal error|RayWorkerError|the worker (?:process )?has died",
        "Ray reports the failure of a task or an actor", "",
        ["ray.exceptions.RayTaskError(ValueError): ray::train_fn() (pid=4211, ip=10.0.0.2)",
         "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::Worker.__init__() (pid=1, ip=10.0.0.2)"],
        ["ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."];
    - Code Consequence "frame": r"in user code:$|: Traceback \(most recent call last\)|^(?:[\w.]+: )?Caught \w+ in (?:DataLoader worker process|replica|pin memory thread)|^(?:During handling of|The above exception)|^Original Traceback|CheckpointException ranks:dict_keys|^Traceback \(most recent call last\)|^Error executing job with overrides|^Set the environment variable HYDRA_FULL_ERROR|For debugging consider passing|^Error termination\. Backtrace:|CUDA kernel errors might be asynchronously reported|Compile with `?TORCH_USE_CUDA_DSA|^Exception raised from |^frame #\d+|^ +what\(\): +\[Rank \d+\]|terminate called (?:after throwing|without)|^Fatal Python error: Aborted|Current thread 0x|^Extension modules:|^Thread 0x|The above exception was the direct cause|^Exception in thread \S+(?: \(.*\))?:$|^Exception in worker|Exception in callback|Task exception was never retrieved|leaked (?:semaphore|shared_memory) objects|destroy_process_group\(\) was not called|^Process \S+:$|multiprocessing\.pool\.RemoteTraceback",
        "the frame around an error", "",
        ["ValueError: Caught ValueError in DataLoader worker process 0.", "During handling of the above exception, another exception occurred:",
         "terminate called after throwing an instance of 'c10::DistBackendError'", "Fatal Python error: Aborted", "Error termination. Backtrace:",
         "/usr/lib/python3.10/multiprocessing/resource_tracker.py:224: There appear to be 1 leaked semaphore objects to clean up at shutdown"],
        ["  what():  CUDA error: an illegal memory access was encountered"];
}
