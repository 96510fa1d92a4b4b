//! A job's variables reach its program exactly as they were given, and no program of Slurm, Pyxis or Enroot before it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use serde_json::{Value, json};
use test_case::test_case;

use crate::{
    ending::{command, held, training},
    images::Site,
    script::cosmos,
    service::{Service, until},
};

const IMAGE: &str = "/lustre/images/tao-toolkit.sqsh";
/// In each value, to find it in other processes.
const MARK: &str = "q7e1c0ffee";
/// Values that a line-based file would split, and names with a meaning for the programs before the job's own.
fn variables() -> BTreeMap<String, String> {
    let text = [
        ("DOTENV", format!("A={MARK}\nPATH=/nowhere\nLD_PRELOAD=/nowhere/x.so")),
        ("TLS_CERT", format!("-----BEGIN CERTIFICATE-----\n{MARK}+/=\n-----END CERTIFICATE-----\n")),
        ("QUOTES", format!("{MARK} it's \"$HOME\" `id` $(id) \\ \t%s é")),
        ("HOME", format!("/nowhere/{MARK}/home")),
        ("TMPDIR", format!("/nowhere/{MARK}/tmp")),
        ("XDG_CONFIG_HOME", format!("/nowhere/{MARK}/config")),
        ("XDG_CACHE_HOME", format!("/nowhere/{MARK}/cache")),
        ("ENROOT_CONFIG_PATH", format!("/nowhere/{MARK}/enroot")),
        ("https_proxy", format!("http://{MARK}.example:1")),
        ("all_proxy", format!("http://{MARK}.example:1")),
        ("LANG", "C".to_owned()),
        ("LC_ALL", "C.UTF-8".to_owned()),
    ];
    text.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Half of the variables are plain, half are secret.
fn give(job: &mut Value) {
    for (at, (key, value)) in variables().into_iter().enumerate() {
        let field = if at % 2 == 0 { "docker_env_vars" } else { "secret_env_vars" };
        job[field][key] = value.into();
    }
}

/// A process of a job.
pub(crate) struct Process {
    pub(crate) id: String,
    pub(crate) command_line: String,
    pub(crate) environment: String,
}

impl Process {
    /// Whether it has a part in the start of the program: the batch script, srun, or a program of Pyxis.
    fn is_before(&self) -> bool {
        ["srun ", "slurm_script", "enroot", "unsquashfs"].iter().any(|part| self.command_line.contains(part))
            && !self.is_program()
    }

    fn is_program(&self) -> bool {
        self.command_line.starts_with("bash -euo pipefail")
            || self.command_line.contains("/container_handler.sh ")
    }

    fn variables(&self) -> BTreeMap<&str, &str> {
        self.environment.split('\0').filter_map(|line| line.split_once('=')).collect()
    }
}

/// The processes of a job, on all nodes: the cluster's machines share this machine's processes, with those of another cluster, which
/// has the same Slurm ids.
pub(crate) fn processes(id: &str) -> Vec<Process> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let read = |entry: fs::DirEntry| {
        let environment = text(fs::read(entry.path().join("environ")).ok()?);
        let command_line = text(fs::read(entry.path().join("cmdline")).ok()?).replace('\0', " ");
        (environment.contains("SLURM_JOB_ID=") && environment.contains(id)).then(|| Process {
            id: entry.file_name().to_string_lossy().into_owned(),
            command_line,
            environment,
        })
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(read).collect()
}

/// Watches a job until so many of its programs run. Each has every variable, and no process before them has one.
fn watch(service: &Service, id: &str, programs: usize) {
    let (mut before, mut seen) = (Vec::new(), Vec::new());
    until("the programs to run", Duration::from_mins(1), || {
        let found = processes(id);
        assert_ne!(service.status(id)["phase"], "ended", "{}", service.status(id));
        let (now, others): (Vec<_>, Vec<_>) = found.into_iter().partition(Process::is_program);
        before.extend(others.into_iter().filter(Process::is_before));
        seen = now;
        // A shell has children with the same command line.
        let task = |one: &Process| {
            ["SLURM_STEP_ID", "SLURM_NODEID"].map(|key| one.variables().get(key).copied().map(str::to_owned))
        };
        seen.iter().map(task).collect::<BTreeSet<_>>().len() >= programs
    });
    for part in ["srun ", "slurm_script"] {
        assert!(before.iter().any(|one| one.command_line.contains(part)), "{part} was not seen");
    }
    for Process { command_line, environment, .. } in &before {
        assert!(!environment.contains(MARK) && !command_line.contains(MARK), "{command_line}: {environment}");
    }
    for program in &seen {
        let found = program.variables();
        for (key, value) in variables() {
            assert_eq!(found.get(key.as_str()), Some(&value.as_str()), "{key} of {}", program.command_line);
        }
    }
}

/// A command on so many nodes, in an image or not.
fn waiting(image: Option<&str>, nodes: u32) -> Value {
    let mut job = held("true");
    job["resources"]["num_nodes"] = nodes.into();
    if let Some(image) = image {
        job["image"] = image.into();
    }
    job
}

#[test_case(waiting(None, 1), 1 ; "a command on a node")]
#[test_case(waiting(None, 2), 2 ; "a command on two nodes")]
#[test_case(waiting(Some(IMAGE), 1), 1 ; "a command in a container")]
#[test_case(waiting(Some(IMAGE), 2), 2 ; "a command in two containers")]
#[test_case(training(60, &json!({"epoch_seconds": 1})), 1 ; "a training")]
#[test_case(cosmos(&json!({"epoch_seconds": 60})), 4 ; "the roles of Cosmos")]
fn a_variable_reaches_its_program_exactly_and_nothing_before_it(mut job: Value, programs: usize) {
    let service = Service::start();
    give(&mut job);
    let id = service.submit(&job);
    watch(&service, &id, programs);
    if job["command"].is_null() {
        service.post(&format!("/jobs/{id}/cancel"), "");
        assert_eq!(service.wait_ended(&id)["status"], "Canceled");
    } else {
        service.let_go(&id);
        assert_eq!(service.wait_ended(&id)["status"], "Done");
    }
}

#[test]
fn a_jobs_variables_choose_the_devices_of_its_container() {
    let service = Service::start();
    let mut job = command(
        "cd $TAO_API_RESULTS_DIR/$TAO_API_JOB_ID; { cat /etc/nvidia-container-cli; echo $NVIDIA_DRIVER_CAPABILITIES; } >seen",
    );
    job["image"] = IMAGE.into();
    job["docker_env_vars"] = json!({
        "NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": "graphics,video", "MELLANOX_VISIBLE_DEVICES": "void",
    });
    job["secret_env_vars"] = json!({"NVIDIA_REQUIRE_SECRET": "driver>=9999"});
    let id = service.submit(&job);
    let ended = service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
    let base = service.sandbox.var("SLURM_BASE_RESULTS_DIR");
    let seen = service.sandbox.login(&format!("cat {base}/results/{id}/seen"));
    assert_eq!(seen.trim_end(), "--device=0,1 --graphics --video\ngraphics,video");
}

#[test]
fn a_home_a_proxy_and_a_temporary_directory_of_a_job_do_not_steer_the_import_of_its_image() {
    let mut site = Site::new();
    let name = site.name("steered");
    let image = site.push_held(&name);
    let mut job = waiting(Some(&image), 1);
    job["container"] = json!({"use_sqsh": false});
    job["retry"] = json!({"max_retries": 0});
    give(&mut job);
    let id = site.service.submit(&job);
    let imports = || processes(&id).iter().any(|one| one.command_line.contains("enroot"));
    until("the import of the image", Duration::from_mins(1), imports);
    site.release();
    watch(&site.service, &id, 1);
    site.service.let_go(&id);
    let ended = site.service.wait_ended(&id);
    assert_eq!(ended["status"], "Done", "{ended}");
}
