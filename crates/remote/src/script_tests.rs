use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use test_case::test_case;

use super::{
    launcher::{PerNode, Plain},
    plain::{plain_directives, plain_script},
    *,
};
use slurm::{CudaVersion, EnvKey, SubmitOptions};

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|word| (*word).to_owned()).collect()
}

fn container() -> Container {
    Container {
        image: "nvcr.io#nvidia/tao:6".to_owned(),
        mounts: vec!["/lustre".to_owned(), "/data:/data:ro".to_owned()],
        hook_env: BTreeMap::new(),
        home: None,
    }
}

/// A training in a container.
fn training(nodes: u32) -> Component {
    let argv = words(&["python", "-c", "print('a b')"]);
    Component {
        place: Place::Pyxis(container()),
        lightning_safe: true,
        on_warning: OnWarning::Ignore,
        ..Component::step("main".parse().unwrap(), nodes, Arc::new(PerNode), argv)
    }
}

fn on_hosts(nodes: u32, argv: &[&str]) -> Component {
    Component::step("main".parse().unwrap(), nodes, Arc::new(PerNode), words(argv))
}

fn base() -> BatchScript {
    let directives = Directives {
        partitions: Some("polar,polar3".parse().unwrap()),
        gpus_per_node: 4,
        cpus_per_task: 16,
        options: SubmitOptions { account: Some("edgeai".parse().unwrap()), ..SubmitOptions::default() },
        warning_seconds: 120,
        ..plain_directives("tao-job-1", 240)
    };
    BatchScript {
        log_root: "/lustre/u/slurm-logs".parse().unwrap(),
        results_dir: "/lustre/u/results/1".parse().unwrap(),
        env_file: "/lustre/u/env/1.sh".parse().unwrap(),
        soft_timeout: Some(RunTime::from_hours(3.8).unwrap()),
        max_requeues: 10,
        usage_seconds: 0,
        ..plain_script(directives, "/lustre/u/state/1/1".parse().unwrap(), training(1))
    }
}

fn on_two_hosts() -> BatchScript {
    let directives = Directives {
        partitions: None,
        options: SubmitOptions::default(),
        nodes: 2,
        gpus_per_node: 0,
        requeue: false,
        exclusive: true,
        exclude: vec!["node07".parse().unwrap(), "node09".parse().unwrap()],
        ..base().directives
    };
    let components = vec![on_hosts(2, &["./train.sh"])];
    BatchScript { directives, components, soft_timeout: None, ..base() }
}

/// The supervisor is the same in each script.
fn rendered(script: &BatchScript) -> String {
    let supervisor = [CLAIM, MARKS, TASK, RUN].map(|part| (part, ""));
    let parts = supervisor.into_iter().chain([(SCANCEL, "[scancel]\n")]);
    parts.fold(script.render().unwrap(), |text, (part, name)| text.replace(part, name))
}

/// Compares a script with its file, which is written anew if `UPDATE_SCRIPTS` is set.
fn golden(name: &str, script: &BatchScript) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/rendered/{name}.sbatch"));
    let text = script.render().unwrap();
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is not as rendered; set UPDATE_SCRIPTS=1 to write it anew:\n{text}",
        path.display()
    );
}

#[path = "script_components_tests.rs"]
mod components;

#[test]
fn the_supervisor_is_short() {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let lines = [CLAIM, MARKS, RUN].map(|part| part.lines().filter(is_code).count());
    assert!(lines.iter().sum::<usize>() <= 300, "{lines:?} lines of bash");
}

#[test]
fn an_attempt_that_queues_the_next_one_runs_under_its_number() {
    let chain = Chain {
        no: 1,
        first_name: "tao-job-1".parse().unwrap(),
        script_path: "/lustre/u/sbatch/job_1.sbatch".parse().unwrap(),
        used_seconds: 0,
        most_seconds: 432_000,
        causes: words(&["TIMEOUT", "75"]),
    };
    let mut script =
        BatchScript { chain: Some(chain), components: vec![on_hosts(1, &["./train.sh"])], ..base() };
    script.directives.requeue = false;
    golden("chain", &script);
}

#[test]
fn a_container_on_two_nodes_sees_the_rendezvous_whatever_its_image_says() {
    let mut script = BatchScript { components: vec![training(2)], ..base() };
    script.directives.nodes = 2;
    let text = rendered(&script);
    assert!(text.contains("--container-env=SLURM_PROCID,SLURM_NODEID,SLURMD_NODENAME"), "{text}");
    assert!(text.contains(" --node-rank WORLD_SIZE=2 NUM_GPU_PER_NODE=4 "), "{text}");
}

#[test]
fn what_a_cluster_asks_for_is_in_the_directives() {
    let mut script = base();
    script.directives.mail = Some("ops@example.org".parse().unwrap());
    script.directives.warning_seconds = 300;
    let text = rendered(&script);
    for line in ["mail-type=ALL", "mail-user=ops@example.org", "signal=B:USR1@300"] {
        assert!(text.contains(&format!("#SBATCH --{line}\n")), "{line}: {text}");
    }
}

#[test]
fn without_a_wish_there_is_no_warning_and_no_mail() {
    let mut script = base();
    script.directives.warning_seconds = 0;
    let text = rendered(&script);
    assert!(!text.contains("--signal") && !text.contains("--mail"), "{text}");
    assert!(text.contains("\nreadonly _tao_warning=0\n"), "{text}");
}

#[test]
fn a_warning_leaves_half_of_a_short_time() {
    assert_eq!(warning_before(36, 120), 18);
    assert_eq!(warning_before(13_680, 120), 120);
    assert_eq!(warning_before(1_000_000, u32::MAX), 65_535);
}

#[test]
fn a_job_that_may_not_requeue_never_asks_for_it() {
    let mut script = base();
    script.directives.requeue = false;
    let text = script.render().unwrap();
    assert!(
        text.contains("#SBATCH --no-requeue\n") && text.contains("\nreadonly _tao_max_requeues=-1\n"),
        "{text}"
    );
}

#[test]
fn another_port_is_rendered() {
    let script = BatchScript { port: Some(31_000), ..on_two_hosts() };
    assert!(rendered(&script).contains("\n_tao_port=31000\n"));
}

#[test]
fn bash_and_shellcheck_accept_every_script() {
    let with_space = "/lustre/a b/'c\"d/state".parse::<RemotePath>().unwrap();
    let spaced = BatchScript { log_root: with_space.clone(), env_file: with_space, ..base() };
    for script in components::kinds().into_iter().map(|(_, script)| script).chain([spaced]) {
        let text = script.render().unwrap();
        let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
        bash.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(bash.wait().unwrap().success(), "{text}");
        assert_eq!(shellcheck(&text), "", "{text}");
        assert!(!text.contains("set -x") && !text.contains("-euxo"));
    }
}

/// What shellcheck has against a script; nothing when it is clean.
fn shellcheck(text: &str) -> String {
    // SC1090: the environment file exists on the cluster only. SC2016: a caller's text may hold anything. SC2317: a function
    // that only a trap calls. SC2140: words that shlex quoted, joined.
    let mut check = Command::new("shellcheck");
    check
        .args(["--shell=bash", "--exclude=SC1090,SC1091,SC2016,SC2317,SC2140", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut check = check.spawn().expect("shellcheck is installed: apt-get install shellcheck");
    check.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(check.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn what_cannot_be_passed_on_is_refused() {
    let render = |component: Component| BatchScript { components: vec![component], ..base() }.render();
    let host = |argv: &[&str]| render(on_hosts(1, argv));
    let inside = |container| render(Component { place: Place::Pyxis(container), ..training(1) });
    let image = |image: &str| inside(Container { image: image.to_owned(), ..container() });
    assert_eq!(host(&[]), Err(ScriptError::EmptyCommand));
    assert!(matches!(host(&["a\0b"]), Err(ScriptError::Forbidden { .. })));
    assert!(matches!(image("a\nb"), Err(ScriptError::Forbidden { what: "the image", .. })));
    assert!(matches!(image(""), Err(ScriptError::Forbidden { what: "the image", .. })));
    let mounts = vec!["/x,/y".to_owned()];
    let mounted = inside(Container { mounts, ..container() });
    assert!(matches!(mounted, Err(ScriptError::Forbidden { what: "a mount", .. })));
    for (key, value) in [("NVIDIA_VISIBLE_DEVICES", "all\nPATH=/x"), ("HOME", "/x")] {
        let hook_env = BTreeMap::from([(key.parse().unwrap(), value.to_owned())]);
        let hooks = inside(Container { hook_env, ..container() });
        assert!(matches!(hooks, Err(ScriptError::Forbidden { .. })), "{key}");
    }
    let key: EnvKey = "A".parse().unwrap();
    assert!(matches!(env_text([(&key, "a\0b")]), Err(ScriptError::Forbidden { .. })));
}

#[test_case(|d| d.nodes = 0; "nodes")]
#[test_case(|d| d.cpus_per_task = 0; "cpus")]
fn a_count_of_zero_is_refused(change: fn(&mut Directives)) {
    let mut script = base();
    change(&mut script.directives);
    assert!(matches!(script.render(), Err(ScriptError::Zero { .. })));
}
