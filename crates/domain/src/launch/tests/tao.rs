//! What TAO's jobs have beside others.

use serde_json::Value;

use super::*;
use crate::{fixtures::as_tao, request::environment::CUDA_OVERRIDE};

fn tao_job(network_arch: &str, specs: Value) -> Job {
    let mut job = as_tao(command_job());
    job.spec.image = Some("nvcr.io/nvidia/tao/tao-toolkit:6".parse().unwrap());
    job.spec.work =
        Work::Tao { network_arch: network_arch.parse().unwrap(), action: "train".parse().unwrap(), specs };
    job
}

#[test]
fn a_tao_job_is_told_where_it_runs() {
    let job = tao_job("classification_pyt", json!({}));
    let (text, script) = (env_file(&job), script(&job, &cluster()));
    for line in [
        "export ORCHESTRATION_API_NETWORK=classification_pyt",
        "export ORCHESTRATION_API_ACTION=train",
        "export TAO_EXECUTION_BACKEND=slurm",
        "export CLOUD_BASED=False",
        "export HF_HOME=/lustre/tao/.cache/huggingface",
        "export TAO_API_RESULTS_DIR=/lustre/tao/results",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    assert!(!text.contains("COSMOS") && !text.contains("CUDA"), "{text}");
    assert!(!script.contains("ORCHESTRATION_API_NETWORK") && !script.contains("HF_HOME"), "{script}");
}

#[test]
fn enroots_hooks_get_the_plain_variables_of_devices_and_no_secret() {
    let mut job = tao_job("cosmos-rl", json!({}));
    let vars = [
        ("NVIDIA_DRIVER_CAPABILITIES", "all"),
        ("NVIDIA_NOTES", "two\nlines"),
        ("MELLANOX_VISIBLE_DEVICES", "0"),
    ];
    job.spec.env.extend(vars.map(|(key, value)| (key.parse().unwrap(), value.to_owned())));
    let mut secrets = Secrets::default();
    secrets.env.insert("NVIDIA_API_KEY".parse().unwrap(), "hunter2".to_owned().into());
    let attempt = job.new_attempt("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH).unwrap();
    let submission = plan_submission(&job, &attempt, &cluster(), &secrets).unwrap();
    let text = String::from_utf8(file(&submission, ".sbatch").bytes.clone()).unwrap();
    let hooks = " env MELLANOX_VISIBLE_DEVICES=0 NVIDIA_DRIVER_CAPABILITIES=all srun ";
    let text = text.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
    assert!(text.contains(hooks), "{text}");
    assert!(text.contains(",SLURMD_NODENAME,MELLANOX_VISIBLE_DEVICES,NVIDIA_DRIVER_CAPABILITIES"), "{text}");
    assert!(!text.contains("NVIDIA_NOTES") && !text.contains("NVIDIA_API_KEY"), "{text}");
    let env = String::from_utf8(file(&submission, ".sh").bytes.clone()).unwrap();
    for (key, _) in vars {
        assert!(env.contains(&format!("export {key}=")), "{key}: {env}");
    }
    // Without a container there are no hooks.
    job = command_job();
    job.spec.env.insert("NVIDIA_VISIBLE_DEVICES".parse().unwrap(), "0".to_owned());
    assert!(job.spec.image.is_none() && !script(&job, &cluster()).contains("NVIDIA_VISIBLE_DEVICES"));
}

#[test]
fn a_cache_of_the_callers_own_is_kept() {
    let mut job = tao_job("classification_pyt", json!({}));
    job.spec.env.insert("HUGGINGFACE_HUB_CACHE".parse().unwrap(), "/lustre/hub".to_owned());
    assert!(!env_file(&job).contains("HF_HOME"));
    job.spec.env.clear();
    job.spec.env.insert("HF_HOME".parse().unwrap(), "/lustre/hf".to_owned());
    assert!(env_file(&job).contains("export HF_HOME=/lustre/hf\n"));
}

#[test]
fn another_cuda_is_put_before_the_images_own_inside_the_container() {
    let mut job = tao_job("classification_pyt", json!({}));
    job.spec.env.insert(CUDA_OVERRIDE.parse().unwrap(), "12.6".to_owned());
    let text = script(&job, &cluster());
    assert!(text.contains(" --cuda=/usr/local/cuda-12.6 "), "{text}");
    job.spec.env.insert(CUDA_OVERRIDE.parse().unwrap(), String::new());
    assert!(!script(&job, &cluster()).contains(" --cuda=/usr"), "an empty version is none");
}

#[test]
fn cosmos_on_one_node_has_its_caches_and_all_memory() {
    let job = tao_job("cosmos-rl", json!({}));
    let (text, env) = (script(&job, &cluster()), env_file(&job));
    for part in ["#SBATCH --mem=0\n", " --no-container-mount-home"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for line in ["COSMOS_CACHE=/lustre/tao/.cache/cosmos\n", "CUDA_OVERRIDE_VERSION=12.8\n"] {
        assert!(env.contains(&format!("export {line}")), "{line}: {env}");
    }
    assert!(!text.contains("COSMOS_NODE_ROLE") && !text.contains(" --hide-tasks "), "{text}");
}

#[test]
fn cosmos_on_several_nodes_has_roles_and_tells_the_container_so() {
    let mut job = tao_job("cosmos-rl", json!({"policy": {"parallelism": {"tp_size": 16}}}));
    job.spec.resources.nodes = 3;
    job.spec.resources.gpus_per_node = 8;
    job.spec.env.insert("NUM_POLICY_NODES".parse().unwrap(), "7".to_owned());
    let text = script(&job, &cluster());
    for part in [
        "_tao_component controller step 1 0 ",
        "_tao_component policy with 2 0 ",
        "_tao_component rollout with 1 0 ",
        " COSMOS_CONTROLLER_HOST=\"${_tao_hosts[0]}\":8082 POLICY_NODES=\"$(_tao_slice 0 2 ' ')\" \
         ROLLOUT_NODES=\"$(_tao_slice 2 1 ' ')\" COSMOS_NODE_ROLE=policy ",
        " WORLD_SIZE=3 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let env: Value = serde_json::from_slice(
        &file(&submission(&job, &cluster()), "env/00000000-0000-0000-0000-000000000001.json").bytes,
    )
    .unwrap();
    assert_eq!((&env["COSMOS_RL_MULTINODE"], &env["NUM_POLICY_NODES"]), (&json!("1"), &json!("2")));
    let env = env_file(&job);
    assert!(
        env.contains("export NODE_LAUNCH_METADATA_POLICY=") && env.contains("NUM_POLICY_NODES=2\n"),
        "{env}"
    );
}

#[test]
fn a_plan_that_no_longer_fits_the_job_is_not_staged() {
    let mut job = tao_job("cosmos-rl", json!({}));
    job.spec.resources.nodes = 5;
    let attempt = job.new_attempt("/lustre/tao".parse().unwrap(), DateTime::UNIX_EPOCH).unwrap();
    let planned = plan_submission(&job, &attempt, &cluster(), &Secrets::default());
    assert!(matches!(planned, Err(StagingError::Program(ProgramError::Roles))));
}
