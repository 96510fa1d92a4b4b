//! The batch scripts of Cosmos-RL.

use super::*;

/// A training of two nodes for the policy and one for the rollout.
pub(super) fn cosmos() -> BatchScript {
    let BatchScript { launch, directives, .. } = base();
    let Launch::Container(container) = launch else { unreachable!() };
    let roles = Some(CosmosNodes { policy: 2, rollout: 1, controller_port: 8082 });
    BatchScript {
        directives: Directives {
            nodes: 3,
            gpus_per_node: 8,
            exclusive: true,
            all_memory: true,
            ..directives
        },
        task: TaskSetup {
            cuda: Some("12.8".parse::<CudaVersion>().unwrap()),
            on_warning: OnWarning::Ignore,
            ..TaskSetup::default()
        },
        launch: Launch::Cosmos { container, roles },
        ..base()
    }
}

#[test]
fn cosmos_on_three_nodes() {
    insta::assert_snapshot!(rendered(&cosmos()), @r##"
    #!/bin/bash
    #SBATCH --job-name=tao-job-1
    #SBATCH --account=edgeai
    #SBATCH --partition=polar,polar3
    #SBATCH --nodes=3
    #SBATCH --ntasks-per-node=1
    #SBATCH --ntasks=3
    #SBATCH --gres=gpu:8
    #SBATCH --cpus-per-task=16
    #SBATCH --mem=0
    #SBATCH --time=04:00:00
    #SBATCH --output=/lustre/u/state/1/1/main.out
    #SBATCH --error=/lustre/u/state/1/1/main.err
    #SBATCH --open-mode=append
    #SBATCH --wait-all-nodes=1
    #SBATCH --export=ALL
    #SBATCH --signal=B:USR1@120
    #SBATCH --requeue
    #SBATCH --exclusive
    # Written by tao-slurm for one attempt of one job. Changes after the submission have no effect.

    readonly _tao_name=tao-job-1
    readonly _tao_state=/lustre/u/state/1/1
    readonly _tao_logs=/lustre/u/slurm-logs/tao-job-1-"$SLURM_JOB_ID"
    readonly _tao_results=/lustre/u/results/1
    [claim]
    [marks]
    export SRUN_CPUS_PER_TASK=16

    export WORLD_SIZE=3 NUM_GPU_PER_NODE=8 MASTER_PORT=29500
    [rendezvous]
    [wait]

    readonly _tao_limit=13680
    [limit]

    readonly _tao_task='trap "" USR1
    trap : TERM INT HUP
    _tao_leave() {
      set -C
      if (($2)); then echo "$2" 2>/dev/null >/lustre/u/state/1/1/failed"${1:+_$1}"; fi
      exit "$2"
    }
    if [ ! -r /lustre/u/env/1.sh ]; then
      echo "tao-slurm: the environment file of this job is not there:" /lustre/u/env/1.sh >&2
      _tao_leave "$1" 121
    fi
    . /lustre/u/env/1.sh
    export NODE_RANK="${SLURM_NODEID:?}"
    export CUDA_HOME=/usr/local/cuda-12.8 CUDA_PATH=/usr/local/cuda-12.8 LD_LIBRARY_PATH="/usr/local/cuda-12.8/lib64:/usr/local/cuda-12.8/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" LIBRARY_PATH="/usr/local/cuda-12.8/lib64:/usr/local/cuda-12.8/lib${LIBRARY_PATH:+:$LIBRARY_PATH}" CPATH="/usr/local/cuda-12.8/include${CPATH:+:$CPATH}"
    true 2>/dev/null >/lustre/u/state/1/1/begun"${1:+_$1}.${SLURM_NODEID-}"
    "${@:2}"
    _tao_leave "$1" "$?"'

    readonly _tao_policy_nodes=2 _tao_rollout_nodes=1 _tao_controller_port=8082
    [roles]

    COSMOS_NODE_ROLE=controller srun --overlap --nodes=1 --ntasks=1 --nodelist="$CONTROLLER_NODE" --output="$_tao_logs"/controller/%t.out --error="$_tao_logs"/controller/%t.err --open-mode=append --container-image='nvcr.io#nvidia/tao:6' --container-mounts='/lustre,/data:/data:ro' --container-env=WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT,COSMOS_NODE_ROLE,COSMOS_CONTROLLER_HOST,CONTROLLER_NODE,POLICY_NODES,ROLLOUT_NODES,SLURM_NODEID,SLURMD_NODENAME --no-container-mount-home --export=ALL --kill-on-bad-exit=1 -- bash -c "$_tao_task" task controller python -c "print('a b')" </dev/null &
    _tao_programs+=("$!") _tao_roles+=(controller) _tao_tasks+=(1)
    COSMOS_NODE_ROLE=policy srun --overlap --nodes=2 --ntasks=2 --nodelist="$(_tao_slice 0 "$_tao_policy_nodes" ,)" --output="$_tao_logs"/policy/%t.out --error="$_tao_logs"/policy/%t.err --open-mode=append --container-image='nvcr.io#nvidia/tao:6' --container-mounts='/lustre,/data:/data:ro' --container-env=WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT,COSMOS_NODE_ROLE,COSMOS_CONTROLLER_HOST,CONTROLLER_NODE,POLICY_NODES,ROLLOUT_NODES,SLURM_NODEID,SLURMD_NODENAME --no-container-mount-home --export=ALL --kill-on-bad-exit=1 -- bash -c "$_tao_task" task policy python -c "print('a b')" </dev/null &
    _tao_programs+=("$!") _tao_roles+=(policy) _tao_tasks+=(2)
    COSMOS_NODE_ROLE=rollout srun --nodes=1 --ntasks=1 --nodelist="$(_tao_slice "$_tao_policy_nodes" "$_tao_rollout_nodes" ,)" --output="$_tao_logs"/rollout/%t.out --error="$_tao_logs"/rollout/%t.err --open-mode=append --container-image='nvcr.io#nvidia/tao:6' --container-mounts='/lustre,/data:/data:ro' --container-env=WORLD_SIZE,NUM_GPU_PER_NODE,MASTER_ADDR,MASTER_PORT,COSMOS_NODE_ROLE,COSMOS_CONTROLLER_HOST,CONTROLLER_NODE,POLICY_NODES,ROLLOUT_NODES,SLURM_NODEID,SLURMD_NODENAME --no-container-mount-home --export=ALL --kill-on-bad-exit=1 -- bash -c "$_tao_task" task rollout python -c "print('a b')" </dev/null &
    _tao_programs+=("$!") _tao_roles+=(rollout) _tao_tasks+=(1)
    _tao_run_clock 13680 120 &
    _tao_clock=$!
    _tao_warnable=1
    if ((_tao_warned)); then _tao_pass_warning_on; fi
    _tao_wait_roles
    _tao_programs=()
    if ((_tao_ended)); then exit "$_tao_ended"; fi
    [requeue]
    if ((_tao_limited)); then _tao_requeue 10; fi
    if ((_tao_limited)); then exit 124; fi
    if ((_tao_code == 0)); then _tao_check_success; fi
    exit "$_tao_code"
    "##);
}

#[test]
fn cosmos_without_a_rollout_has_two_roles() {
    let mut script = cosmos();
    let Launch::Cosmos { roles: Some(roles), .. } = &mut script.launch else { unreachable!() };
    (roles.policy, roles.rollout) = (3, 0);
    let text = rendered(&script);
    assert!(text.contains("COSMOS_NODE_ROLE=policy") && !text.contains("COSMOS_NODE_ROLE=rollout"), "{text}");
}

#[test]
fn cosmos_on_one_node_is_one_step_of_plain_srun() {
    let mut script = cosmos();
    script.directives.nodes = 1;
    let Launch::Cosmos { roles, .. } = &mut script.launch else { unreachable!() };
    *roles = None;
    let text = rendered(&script);
    assert!(text.contains("--no-container-mount-home --export=ALL"), "{text}");
    assert!(text.contains("#SBATCH --mem=0\n"), "{text}");
    for absent in ["unset ", "SLURM_JOB_NAME=bash", "--overlap", "COSMOS_NODE_ROLE"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}
