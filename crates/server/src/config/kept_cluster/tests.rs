use std::{collections::BTreeSet, time::Duration};

use serde_json::json;
use test_case::test_case;

use super::{declare::Section, *};

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAsrKysrKysrKysrKysrKysrKysrKysrKysrKysrKysr";

fn rules() -> KeptRules {
    let environment =
        Environment::of(&[("HOME", "/home/t"), ("SSH_AUTH_SOCK", "/run/agent"), ("SLURM_USER", "other")]);
    let mut settings = Settings::default();
    settings.ssh.key_directory = "/keys".into();
    KeptRules::of(&settings, &environment)
}

fn good() -> Value {
    let line = |host: &str| format!("{host} ssh-ed25519 {KEY}");
    json!({
        "user": "ann", "hosts": ["login1", "login2:2222"], "ssh_key": "dgx",
        "host_keys": [line("login1"), line("[login2]:2222")],
    })
}

fn check(document: &Value) -> Result<ClusterConfig, Vec<Violation>> {
    rules().check(&"new".parse().unwrap(), document)
}

#[test]
fn a_document_makes_the_same_cluster_as_the_file() {
    let mut document = good();
    for (key, value) in [
        ("account", json!("vision")),
        ("partitions", json!(["polar", "polar3"])),
        ("num_gpus", json!(2)),
        ("poll_min", json!("2s")),
        ("base_results_dir", json!("/lustre/ann/results")),
        ("num_nodes", json!(null)),
    ] {
        document[key] = value;
    }
    let ClusterConfig { cluster, ssh, poll_min, poll_max } = check(&document).unwrap();
    assert_eq!((cluster.name.as_str(), cluster.user.as_str(), ssh.user.as_str()), ("new", "ann", "ann"));
    assert_eq!(cluster.partitions.unwrap().as_str(), "polar,polar3");
    assert_eq!((cluster.resources.gpus_per_node, cluster.resources.nodes), (2, 1));
    assert_eq!(
        (cluster.base_dir.as_str(), cluster.images.cache_dir.as_str()),
        ("/lustre/ann", "/lustre/ann")
    );
    assert_eq!((poll_min, poll_max), (Duration::from_secs(2), Duration::from_mins(1)));
    assert_eq!(ssh.key_path.as_deref(), Some(std::path::Path::new("/keys/dgx")));
    // A caller of the API does not get the agent and known_hosts of the service's account.
    assert_eq!((ssh.use_agent, ssh.known_hosts.len(), ssh.pinned_host_keys.len()), (false, 0, 2));
}

#[test_case("user", json!("no user"), "/user invalid" ; "user")]
#[test_case("user", json!("-oProxyCommand=x"), "/user invalid" ; "an option for a user")]
#[test_case("hosts", json!(["login1", "a b"]), "/hosts/1 invalid" ; "a host")]
#[test_case("hosts", json!([]), "/hosts required" ; "no host")]
#[test_case("hosts", json!(["login1", "login3"]), "/hosts/1 invalid" ; "a host without a key")]
#[test_case("hosts", json!(["login1", "login2"]), "/hosts/1 invalid" ; "a key for another port")]
#[test_case("host_keys", json!([]), "/host_keys required" ; "no host key")]
#[test_case("host_keys", json!(["login1 ssh-ed25519 AAAA", format!("* ssh-ed25519 {KEY}")]), "/host_keys/0 invalid" ; "a host key")]
#[test_case("ssh_key", json!("../id"), "/ssh_key invalid" ; "a path up")]
#[test_case("ssh_key", json!("/etc/shadow"), "/ssh_key invalid" ; "a path")]
#[test_case("ssh_key", json!(7), "/ssh_key invalid" ; "a number for a key")]
#[test_case("ssh_key", json!("-----BEGIN OPENSSH PRIVATE KEY-----"), "/ssh_key invalid" ; "a key itself")]
#[test_case("base_results_dir", json!("lustre"), "/base_results_dir invalid" ; "base directory")]
#[test_case("container_mounts", json!(["/a", "b"]), "/container_mounts/1 invalid" ; "mount")]
#[test_case("node_local_paths", json!(["/raid", "/"]), "/node_local_paths/1 invalid" ; "node-local path")]
#[test_case("account", json!("a b"), "/account invalid" ; "account")]
#[test_case("partitions", json!(["a b"]), "/partitions invalid" ; "partition")]
#[test_case("time_hours", json!(12), "/time_hours time_limit" ; "time")]
#[test_case("max_time_hours", json!(0), "/max_time_hours out_of_range" ; "no time")]
#[test_case("num_nodes", json!(0), "/num_nodes out_of_range" ; "no node")]
#[test_case("sessions", json!(9), "/sessions out_of_range" ; "sessions")]
#[test_case("poll_min", json!("0s"), "/poll_min out_of_range" ; "no pause")]
#[test_case("poll_min", json!("500ms"), "/poll_min out_of_range" ; "too short a pause")]
#[test_case("poll_max", json!("1000000000 years"), "/poll_max out_of_range" ; "a pause for ever")]
#[test_case("poll_max", json!("soon"), "/poll_max invalid" ; "no duration")]
#[test_case("connect_timeout", json!("1h"), "/connect_timeout out_of_range" ; "patience")]
#[test_case("sbatch_export", json!("SOME"), "/sbatch_export invalid" ; "export")]
#[test_case("require_sqsh", json!(true), "" ; "allowed")]
#[test_case("container_runtime", json!("docker"), "/container_runtime invalid" ; "another runtime")]
#[test_case("key_path", json!("/etc/key"), "/key_path unknown_field" ; "a key's path")]
#[test_case("agent_socket", json!("/run/agent"), "/agent_socket unknown_field" ; "an agent")]
#[test_case("known_hosts", json!(["/etc/x"]), "/known_hosts unknown_field" ; "a file of host keys")]
#[test_case("colour", json!("red"), "/colour invalid" ; "an unknown key")]
#[test_case("num_gpus", json!("many"), "/num_gpus invalid" ; "another type")]
fn a_fault_is_at_its_place(key: &str, value: Value, found: &str) {
    let mut document = good();
    document[key] = value;
    let said = check(&document).err().unwrap_or_default();
    let said: Vec<_> = said.iter().map(|one| format!("{} {}", one.pointer, one.code)).collect();
    assert_eq!(said.join(", "), found, "{document}");
}

#[test]
fn all_faults_are_reported_at_once() {
    let mut document = good();
    for (key, value) in [
        ("user", json!("no user")),
        ("account", json!("a b")),
        ("sessions", json!(9)),
        ("num_nodes", json!(0)),
    ] {
        document[key] = value;
    }
    for (key, value) in [("ssh_key", json!(null)), ("poll_min", json!("soon")), ("key_path", json!("/k"))] {
        document[key] = value;
    }
    let places = |document: &Value| {
        check(document).unwrap_err().into_iter().map(|one| one.pointer).collect::<BTreeSet<_>>()
    };
    let all = ["/user", "/account", "/sessions", "/num_nodes", "/ssh_key", "/poll_min", "/key_path"];
    assert_eq!(places(&document), all.map(str::to_owned).into());
    let needed = ["/user", "/hosts", "/ssh_key", "/host_keys"];
    assert_eq!(places(&json!({})), needed.map(str::to_owned).into());
}

#[test]
fn too_large_documents_and_lists_are_refused() {
    let many = |key: &str, most: usize| {
        let mut document = good();
        document[key] = vec!["x"; most + 1].into();
        check(&document).unwrap_err()[0].code
    };
    for (key, most) in MOST {
        assert_eq!(many(key, most), "too_many", "{key}");
    }
    let mut document = good();
    document["mail_user"] = "x".repeat(MOST_BYTES).into();
    assert_eq!(check(&document).unwrap_err()[0].pointer, "");
    assert_eq!(check(&json!([])).unwrap_err()[0].code, "wrong_type");
}

#[test]
fn numbers_out_of_range_are_faults() {
    for key in ["time_hours", "timeout_hours", "max_time_hours"] {
        for value in [1e308, -1.0, 0.0, 1e-308] {
            let mut document = good();
            document[key] = value.into();
            if key != "max_time_hours" {
                document["max_time_hours"] = 1e308.into();
            }
            let _ = check(&document);
        }
    }
    for key in [
        "num_nodes",
        "num_gpus",
        "max_num_gpus_per_node",
        "cpus_per_task",
        "conversion_minutes",
        "max_retries",
        "conversion_memory_gb",
        "max_requeues",
        "node_exclusion_hours",
        "warning_seconds",
    ] {
        let mut document = good();
        for value in [u64::from(u32::MAX), u64::MAX] {
            document[key] = value.into();
            assert_eq!(check(&document).unwrap_err()[0].pointer, format!("/{key}"), "{value}");
        }
    }
}

#[test]
fn the_api_has_the_keys_of_the_file() {
    let document = api::openapi();
    let fields = document.pointer("/components/schemas/ClusterSettings/properties").unwrap();
    let mut of_api: BTreeSet<_> = fields.as_object().unwrap().keys().map(String::as_str).collect();
    let mut of_file: BTreeSet<_> = ClusterSettings::KEYS.iter().map(|key| key.name).collect();
    assert!(of_api.remove("ssh_key"));
    for key in FILE_ONLY {
        assert!(of_file.remove(key), "{key}");
        of_api.remove(key);
    }
    assert_eq!(of_api, of_file);
}

#[test]
fn a_missing_key_is_named_without_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let rules = KeptRules { key_directory: directory.path().to_owned(), ..rules() };
    let config = rules.check(&"new".parse().unwrap(), &good()).unwrap();
    let fault = key_fault(&config).unwrap();
    assert!(fault.contains("`dgx`") && fault.contains("No such file"), "{fault}");
    assert!(!fault.contains(directory.path().to_str().unwrap()), "{fault}");
    std::fs::write(directory.path().join("dgx"), "ssh-ed25519 AAAA").unwrap();
    assert!(key_fault(&config).unwrap().contains("public key"));
    std::fs::write(directory.path().join("dgx"), "-----BEGIN RSA PRIVATE KEY-----\n").unwrap();
    assert_eq!(key_fault(&config), None);
}

#[test]
fn a_document_has_the_options_of_jobs() {
    let mut document = good();
    for (key, value) in [
        ("gpu_request", json!("gpus-per-node")),
        ("mpi_plugin", json!("pmix")),
        ("gpu_type", json!("a100")),
        ("memory_per_cpu", json!("4G")),
        ("tasks_per_node", json!(2)),
        ("gres", json!(["nvme:1"])),
        ("constraint", json!("ib")),
        ("exclusive", json!(true)),
        ("exclude", json!("node13")),
        ("qos", json!("normal")),
        ("nice", json!(-5)),
        ("comment", json!("from the service")),
        ("rpc_budget", json!({"burst": 40, "per_minute": 4})),
        (
            "sbatch_options",
            json!({"hint": "nomultithread", "contiguous": true, "threads-per-core": 1, "mem": null}),
        ),
    ] {
        document[key] = value;
    }
    let cluster = check(&document).unwrap().cluster;
    assert_eq!(cluster.rpc_budget, Some(domain::RpcBudget { burst: 40, per_minute: 4 }));
    let submit = &cluster.submit;
    assert_eq!((submit.gpu_request, submit.exclusive), (slurm::GpuRequest::GpusPerNode, Some(true)));
    assert_eq!(cluster.resources.tasks_per_node, 2);
    assert_eq!(submit.mpi_plugin, "pmix".parse().ok());
    let options = &submit.options;
    assert_eq!(options.memory, Some(slurm::MemoryRequest::PerCpu("4G".parse().unwrap())));
    assert_eq!((options.qos.as_ref().unwrap().as_str(), options.nice), ("normal", Some(-5)));
    let shown: Vec<String> = options.others.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(shown, ["contiguous=true", "hint=nomultithread", "mem=false", "threads-per-core=1"]);
}

#[test_case("rpc_budget", json!({"burst": 40}), "/rpc_budget out_of_range" ; "half a budget")]
#[test_case("rpc_budget", json!({"burst": 40, "per_minute": 0}), "/rpc_budget out_of_range" ; "no requests")]
#[test_case("rpc_budget", json!({"burst": 40, "per_minute": 4, "per_hour": 1}), "/rpc_budget unknown_field" ; "another limit")]
#[test_case("gpu_request", json!("gpus"), "/gpu_request invalid" ; "another option")]
#[test_case("mpi_plugin", json!("pmix; rm"), "/mpi_plugin invalid" ; "no plugin")]
#[test_case("memory", json!("much"), "/memory invalid" ; "no memory")]
#[test_case("gres", json!(["nvme:1", "mps:50"]), "/gres/1 invalid" ; "parts of GPUs for every job")]
#[test_case("constraint", json!("a b"), "/constraint invalid" ; "no constraint")]
#[test_case("exclude", json!("/etc/hosts"), "/exclude invalid" ; "a file of nodes")]
#[test_case("sbatch_options", json!({"output": "x"}), "/sbatch_options reserved" ; "an owned option")]
#[test_case("sbatch_options", json!({"hint": ["a"]}), "/sbatch_options wrong_type" ; "a list")]
#[test_case("sbatch_options", json!([]), "/sbatch_options invalid" ; "no table")]
fn a_wrong_option_names_its_key(key: &str, value: Value, expected: &str) {
    let mut document = good();
    document[key] = value;
    let faults = check(&document).unwrap_err();
    let seen: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect();
    assert_eq!(seen, [expected]);
}

#[test]
fn memory_is_set_once() {
    let mut document = good();
    (document["memory"], document["memory_per_gpu"]) = (json!("64G"), json!("32G"));
    assert_eq!(check(&document).unwrap_err()[0].code, "contradiction");
}
