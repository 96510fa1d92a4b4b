//! Nodes and processes that a launcher or a coordinator lost, or could not reach. These rules come before the consequences: such lines
//! have words of those.

rules! { LAUNCHERS:
    - Network Symptom "ssh": r"'?\bssh\b.* returned non-zero exit status 255\b|\bssh exited with exit code 255\b|^Host key verification failed\.|: Permission denied \(publickey",
        "a launcher could not reach a node by SSH, or lost its connection",
        "Let the nodes accept each other's keys, or start the processes by srun. If the job ran for a while, look for a node that failed.",
        ["subprocess.CalledProcessError: Command 'ssh -o PasswordAuthentication=no node02 hostname' returned non-zero exit status 255.",
         "pdsh@node01: node02: ssh exited with exit code 255", "Host key verification failed.",
         "tao@node02: Permission denied (publickey,password)."],
        ["subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 255.",
         "subprocess.CalledProcessError: Command 'ssh node02 python train.py' returned non-zero exit status 1."];
    - Unknown Death "jax-task-died": r"^/job:\w+/replica:\d+/task:\d+(?:$| has been set to ERROR in coordination service)"
        unless r"Barrier timed out\..*Timed out task names:",
        "a process of a JAX job died, and the others noticed that",
        "Read the log of this task. If it says nothing, the task was killed, which is mostly for its memory.",
        ["/job:jax_worker/replica:0/task:3",
         "2024-05-01 12:00:00.1: E external/xla/xla/tsl/distributed_runtime/coordination/coordination_service.cc:1170] /job:jax_worker/replica:0/task:3 has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout."],
        ["see /job:jax_worker/replica:0/task:3 for more"];
    - Slurm Death "ray-node-died": r"actor is dead because its node has died|node \S+ (?:has been )?marked dead because the detector has missed too many heartbeats",
        "Ray lost a node of the job",
        "Look for what Slurm and the log of Ray on that node say. Run the job again without the node.",
        ["The actor is dead because its node has died. Node Id: 5fa2c3"],
        ["The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR"];
}
