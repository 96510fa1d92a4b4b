//! Faults of Slurm, and of the places where processes meet.

rules! { SCHEDULER:
    Infrastructure Slurm Cause "slurm-step": r"srun: error: .*(?:Node failure on|Unable to confirm allocation|Task launch for .* failed on node|Timed out waiting for job step)|slurmstepd.*: error: .*(?:Communication connection failure|Node failure)|Job step aborted: .*due to node failure",
        "Slurm lost a node of the job, or could not start its step",
        "Run the job again without the node. If this persists, report the node.",
        ["srun: error: Node failure on node02",
         "srun: error: Task launch for StepId=12.0 failed on node node03: Communication connection failure"],
        ["srun: error: node02: task 1: Exited with exit code 1"];
    - TimeLimit Death "time-limit": r"CANCELLED AT \S+ DUE TO TIME LIMIT",
        "the job reached its Slurm time limit",
        "Ask for more time, save checkpoints, or look for what has stopped: a job that hangs reaches its limit too.",
        ["slurmstepd: error: *** JOB 7 ON node01 CANCELLED AT 2024-05-01T12:00:00 DUE TO TIME LIMIT ***"],
        ["slurmstepd: error: *** STEP 7.0 ON node01 CANCELLED AT 2024-05-01T12:00:00 ***"];
    - Slurm Death "node-lost": r"CANCELLED AT \S+ DUE TO (?:NODE FAILURE|PREEMPTION|JOB REQUEUE)",
        "Slurm took the job's nodes away",
        "Run the job again. If a node failed, report it.",
        ["slurmstepd: error: *** JOB 7 ON node01 CANCELLED AT 2024-05-01T12:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"],
        ["slurmstepd: error: *** JOB 7 ON node01 CANCELLED AT 2024-05-01T12:00:00 DUE TO TIME LIMIT ***"];
    Infrastructure Network Cause "port-taken": r"^tao-slurm: port \d+ is taken on ",
        "another program has the port of a service on its node",
        "Run the job again, or give the service another port.",
        ["tao-slurm: port 20824 is taken on node01"],
        ["tao-slurm: the port is not there"];
    Infrastructure Network Symptom "rendezvous": r"RendezvousConnectionError|The (?:client|server) socket has failed to (?:connect|listen)|EADDRINUSE|TCPStore.*timed? ?out",
        "the job's nodes could not connect to each other, or the port was in use",
        "Look for a process that failed before it connected. If there is none, check the name and the port of the first node.",
        ["torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.",
         "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE"],
        [];
}
