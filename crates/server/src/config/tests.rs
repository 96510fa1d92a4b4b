//! The configuration as a whole: its sources and its error messages.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use test_case::test_case;

use super::*;

mod jwt;
mod log_in;

const CLUSTER: &[(&str, &str)] =
    &[("HOME", "/home/t"), ("SLURM_USER", "jdoe"), ("SLURM_HOSTNAME", "login1, login2:2222")];

fn written(toml: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.toml");
    fs::write(&path, toml).unwrap();
    (dir, path)
}

fn read(toml: &str, environment: &[(&str, &str)]) -> Result<Config, Problems> {
    let (_dir, path) = written(toml);
    let environment = Environment::of(&[&[("HOME", "/home/t")], environment].concat());
    load(&Overrides { file: Some(path), ..Overrides::default() }, &environment)
}

fn faults(toml: &str, environment: &[(&str, &str)]) -> Vec<String> {
    read(toml, environment).unwrap_err().lines()
}

fn cluster(config: &Config) -> &ClusterConfig {
    let [cluster] = config.clusters.as_slice() else { panic!("{} clusters", config.clusters.len()) };
    cluster
}

#[test]
fn the_environment_alone_defines_a_cluster() {
    let config = load(&Overrides::default(), &Environment::of(CLUSTER)).unwrap();
    let found = cluster(&config);
    assert_eq!(found.cluster.name.as_str(), "default");
    assert_eq!(found.cluster.user.as_str(), "jdoe");
    assert_eq!(found.cluster.hosts, ["login1", "login2"]);
    assert_eq!(found.cluster.base_dir.as_str(), "/lustre/fsw/portfolios/edgeai/users/jdoe");
    assert_eq!(found.cluster.resources, domain::Resources::packaged().unwrap());
    assert_eq!(
        found.ssh.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["login1", "login2:2222"]
    );
    let known: Vec<PathBuf> = vec!["/home/t/.ssh/known_hosts".into(), "/etc/ssh/ssh_known_hosts".into()];
    assert_eq!(found.ssh.known_hosts, known);
    assert_eq!((found.poll_min, found.poll_max), (Duration::from_secs(5), Duration::from_mins(1)));
}

#[test]
fn a_results_directory_means_the_base_above_it() {
    let environment = [CLUSTER, &[("SLURM_BASE_RESULTS_DIR", "/lustre/x/results/")]].concat();
    let config = load(&Overrides::default(), &Environment::of(&environment)).unwrap();
    let found = &cluster(&config).cluster;
    assert_eq!((found.base_dir.as_str(), found.images.cache_dir.as_str()), ("/lustre/x", "/lustre/x"));
}

#[test]
fn every_variable_of_a_cluster_reaches_its_key() {
    let environment: Vec<(&str, &str)> = vec![
        ("SLURM_CLUSTER_NAME", "dgx"),
        ("SSH_USER", "second"),
        ("SSH_HOST", "login9"),
        ("SSH_KEY_PATH", "~/k"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("SSH_KNOWN_HOSTS", "/a,/b"),
        ("SLURM_ACCOUNT", "vision"),
        ("SLURM_PARTITION", "polar, polar3"),
        ("SLURM_BASE_RESULTS_DIR", "/lustre/x"),
        ("SLURM_CONTAINER_MOUNTS", "/lustre,/data:/data:ro"),
        ("SLURM_NUM_GPUS", "2"),
        ("SLURM_MAX_GPUS_PER_NODE", "4"),
        ("SLURM_CPUS_PER_TASK", "8"),
        ("SLURM_TIME_HOURS", "2"),
        ("SLURM_TIMEOUT_HOURS", "1.5"),
        ("SLURM_USE_SQSH", "yes"),
        ("SLURM_REQUIRE_SQSH", "on"),
        ("SLURM_FORCE_RECONVERT_LATEST", "1"),
        ("SLURM_SQSH_CACHE_DIR", "/lustre/sqsh"),
        ("SLURM_CONVERSION_PARTITION", "prep"),
        ("SLURM_CONVERSION_TIMEOUT_MINUTES", "45"),
        ("SLURM_CONVERSION_MEMORY_GB", "64"),
        ("SLURM_ENROOT_TEMP_PATH", "/lustre/tmp"),
        ("SLURM_USE_REQUEUE", "off"),
        ("SLURM_MAIL_USER", "team@example.org"),
        ("TAO_SLURM_POLL_MIN", "7s"),
        ("TAO_SLURM_POLL_MAX", "2m"),
    ];
    let config = read("", &environment).unwrap();
    let found = cluster(&config);
    assert_eq!((found.cluster.name.as_str(), found.cluster.user.as_str()), ("dgx", "second"));
    assert_eq!(found.cluster.hosts, ["login9"]);
    assert_eq!(found.ssh.key_path.as_deref(), Some(Path::new("/home/t/k")));
    assert_eq!(
        (found.ssh.use_agent, found.ssh.agent_socket.as_deref()),
        (true, Some(Path::new("/run/agent")))
    );
    assert_eq!(found.ssh.known_hosts, [PathBuf::from("/a"), PathBuf::from("/b")]);
    assert_eq!(found.cluster.account.as_ref().map(slurm::Account::as_str), Some("vision"));
    assert_eq!(found.cluster.partitions.as_ref().map(slurm::PartitionList::as_str), Some("polar,polar3"));
    assert_eq!(found.cluster.base_dir.as_str(), "/lustre/x");
    let mounts: Vec<String> = found.cluster.mounts.iter().map(ToString::to_string).collect();
    assert_eq!(mounts, ["/lustre", "/data:/data:ro"]);
    let resources = found.cluster.resources;
    assert_eq!((resources.gpus_per_node, resources.max_gpus_per_node, resources.cpus_per_task), (2, 4, 8));
    assert_eq!((resources.time.minutes(), resources.soft_timeout.seconds()), (120, 90 * 60));
    assert_eq!((found.poll_min, found.poll_max), (Duration::from_secs(7), Duration::from_mins(2)));
    let images = &found.cluster.images;
    let policy = images.policy;
    assert_eq!((policy.use_sqsh, policy.require_sqsh, policy.force_reconvert_latest), (true, true, true));
    assert_eq!((images.cache_dir.as_str(), images.conversion_partition.as_str()), ("/lustre/sqsh", "prep"));
    assert_eq!((images.conversion_minutes, images.conversion_memory_gb), (45, 64));
    assert_eq!(images.temp_dir.as_ref().map(slurm::RemotePath::as_str), Some("/lustre/tmp"));
    assert!(!found.cluster.retries.use_requeue && !found.cluster.retries.cancel_unknown_jobs);
    assert_eq!(
        found.cluster.batch.mail_user.as_ref().map(slurm::MailAddress::as_str),
        Some("team@example.org")
    );
}

const TWO: &str = "[[clusters]]\nname = \"a\"\nuser = \"ua\"\nhosts = [\"ha\"]\n\
                   [[clusters]]\nname = \"b\"\nuser = \"ub\"\nhosts = [\"hb\"]\n";

#[test_case("[[clusters]]\nname = \"a\"\nuser = \"ua\"\nhosts = [\"ha\"]", &[("SLURM_USER", "x")], &["a x ha"] ; "the only cluster of the file")]
#[test_case(TWO, &[("SLURM_CLUSTER_NAME", "b"), ("SLURM_USER", "x")], &["a ua ha", "b x hb"] ; "the one that is named")]
#[test_case(TWO, &[("SLURM_USER", "x")], &["a ua ha", "b ub hb"] ; "none of several")]
#[test_case(TWO, &[("SLURM_USER", "x"), ("SLURM_HOSTNAME", "h")], &["a ua ha", "b ub hb", "default x h"] ; "one more")]
fn environment_variables_are_for(toml: &str, environment: &[(&str, &str)], expected: &[&str]) {
    let config = read(toml, environment).unwrap();
    let seen: Vec<String> = config
        .clusters
        .iter()
        .map(|c| format!("{} {} {}", c.cluster.name, c.cluster.user, c.cluster.hosts.join(",")))
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn command_line_options_override_the_environment() {
    let bind = "127.0.0.1:9".parse().unwrap();
    let environment = Environment::of(&[("HOME", "/h"), ("TAO_SLURM_BIND", "127.0.0.1:8")]);
    let config = load(&Overrides { bind: Some(bind), ..Overrides::default() }, &environment).unwrap();
    assert_eq!(config.settings.server.bind, bind);
}

#[test]
fn a_worker_listens_only_on_its_own_address() {
    let bind =
        |toml: &str, environment: &[(&str, &str)]| read(toml, environment).unwrap().settings.worker.bind;
    let file = "[worker]\nbind = \"127.0.0.1:7\"";
    assert_eq!(bind("", &[("TAO_SLURM_BIND", "127.0.0.1:8")]), None);
    assert_eq!(bind(file, &[]), Some("127.0.0.1:7".parse().unwrap()));
    let environment = [("HOME", "/h"), ("TAO_SLURM_WORKER_BIND", "127.0.0.1:8")];
    assert_eq!(bind(file, &environment), Some("127.0.0.1:8".parse().unwrap()));
    let line = Overrides { worker_bind: Some("127.0.0.1:9".parse().unwrap()), ..Overrides::default() };
    let config = load(&line, &Environment::of(&environment)).unwrap();
    assert_eq!(config.settings.worker.bind, line.worker_bind);
}

#[test]
fn what_only_the_nodes_have_is_set_for_each_cluster() {
    let file = "[[clusters]]\nname = \"a\"\nuser = \"u\"\nhosts = [\"h\"]\nnode_local_paths = [\"/raid/\"]";
    let config = read(file, &[]).unwrap();
    assert_eq!(cluster(&config).cluster.node_local, ["/raid".parse().unwrap()]);
}

#[test]
fn a_shorter_limit_shortens_the_default_time() {
    let config =
        read("[[clusters]]\nname = \"a\"\nuser = \"u\"\nhosts = [\"h\"]\nmax_time_hours = 2", &[]).unwrap();
    assert_eq!(cluster(&config).cluster.resources.time.minutes(), 120);
}

#[test_case("[auth]\nmode = \"disabled\"\n[server]\nbind = \"0.0.0.0:80\"", &[],
    "auth.mode (TAO_SLURM_AUTH): is \"disabled\" while server.bind is 0.0.0.0:80, so anybody" ; "open to all")]
#[test_case("", &[("DATABASE_URL", "mysql://h/d")], "database.url (DATABASE_URL): is not a Postgres URL" ; "another database")]
#[test_case("[server]\nbody_limit_bytes = 0", &[], "server.body_limit_bytes: is 0; write for example 10485760" ; "no body")]
#[test_case("[database]\nmax_connections = 0", &[], "database.max_connections: is 0" ; "no connection")]
#[test_case("[worker]\nbatch_size = 0", &[], "worker.batch_size: is 0" ; "no batch")]
#[test_case("[worker]\npartitions_every = \"0s\"", &[], "worker.partitions_every (TAO_SLURM_PARTITIONS_EVERY): is less than 1s" ; "partitions without a pause")]
#[test_case("[database]\nkeep_ended_jobs = \"5m\"", &[], "database.keep_ended_jobs (TAO_SLURM_KEEP_ENDED_JOBS): is less than 1h" ; "ended jobs gone at once")]
#[test_case("[worker]\nlease = \"1s\"", &[], "worker.lease: is less than 10s" ; "short lease")]
#[test_case("[log]\nfilter = \"a=b=c\"", &[], "log.filter (TAO_SLURM_LOG): " ; "bad filter")]
#[test_case("[[clusters]]", &[], "clusters.[1].name (SLURM_CLUSTER_NAME): is missing" ; "no name")]
#[test_case("[[clusters]]\nname = \"a\"", &[], "clusters.a.user (SLURM_USER, SSH_USER): is missing; set it to your login name" ; "no user")]
#[test_case("[[clusters]]\nname = \"a\"", &[], "clusters.a.hosts (SLURM_HOSTNAME, SSH_HOST): is missing; list the login hosts" ; "no host")]
#[test_case("", &[("SLURM_HOSTNAME", "h:x"), ("SLURM_USER", "u")], "clusters.default.hosts (SLURM_HOSTNAME, SSH_HOST): \"x\" is not a port" ; "bad port")]
#[test_case("", &[("SLURM_HOSTNAME", "-o"), ("SLURM_USER", "u")], "clusters.default.hosts (SLURM_HOSTNAME, SSH_HOST): \"-o\" is neither" ; "an option as host")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "-oProxy")], "clusters.default.user (SLURM_USER, SSH_USER): invalid user name" ; "an option as user")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "u"), ("SLURM_CLUSTER_NAME", "DGX")], "clusters.DGX.name (SLURM_CLUSTER_NAME): a cluster name is" ; "bad name")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "u"), ("SLURM_NUM_GPUS", "four")], "SLURM_NUM_GPUS: num_gpus: \"four\" is not a whole number; write for example 4" ; "no number")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "u"), ("SLURM_BASE_RESULTS_DIR", "/base$x")], "clusters.default.base_results_dir (SLURM_BASE_RESULTS_DIR): must have no comma, colon, $," ; "a path that Pyxis would expand")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "u"), ("SLURM_BASE_RESULTS_DIR", "x")], "clusters.default.base_results_dir (SLURM_BASE_RESULTS_DIR): invalid remote path" ; "a relative path")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "u"), ("SLURM_TIME_HOURS", "12")], "clusters.default.time_hours (SLURM_TIME_HOURS): is 12 hours; this cluster allows at most 4" ; "too long")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "u"), ("SLURM_PARTITION", "a,a")], "clusters.default.partitions (SLURM_PARTITION): invalid partition list" ; "a partition twice")]
#[test_case("[[clusters]]\nsessions = 5", CLUSTER, "clusters.[1].sessions: is 5; write a number from 1 to 4" ; "too many sessions")]
#[test_case("[[clusters]]\nhost_keys = [\"AAAA\"]", CLUSTER, "clusters.[1].host_keys: \"AAAA\" is not a known_hosts line" ; "bad host key")]
#[test_case("[[clusters]]\nuse_sqsh = false\nrequire_sqsh = true", CLUSTER, "clusters.[1].require_sqsh (SLURM_REQUIRE_SQSH): needs use_sqsh, which is false" ; "requires what is off")]
#[test_case("[[clusters]]\nmax_retries = 101", CLUSTER, "clusters.[1].max_retries: is 101; write a number from 0 to 100" ; "too many retries")]
#[test_case("[[clusters]]\nwarning_seconds = 70000", CLUSTER, "clusters.[1].warning_seconds: is 70000; write a number from 0 to 65535" ; "a warning that Slurm cannot give")]
#[test_case("[[clusters]]\nsbatch_export = \"some\"", CLUSTER, "clusters.[1].sbatch_export: is \"some\"; write \"ALL\" or \"NIL\"" ; "half an environment")]
#[test_case("[[clusters]]\nmail_user = \"a b\"", CLUSTER, "clusters.[1].mail_user (SLURM_MAIL_USER): invalid mail address" ; "no address")]
#[test_case("", &[("SLURM_HOSTNAME", "h"), ("SLURM_USER", "u"), ("SLURM_USE_SQSH", "perhaps")], "SLURM_USE_SQSH: use_sqsh: \"perhaps\" is not true or false; write for example true" ; "neither yes nor no")]
#[test_case("[[clusters]]\npoll_min = \"10ms\"", CLUSTER, "clusters.[1].poll_min: is less than 1s" ; "too often")]
#[test_case("[[clusters]]\npoll_max = \"2s\"", CLUSTER, "clusters.[1].poll_max: is less than poll_min" ; "bounds crossed")]
#[test_case("[[clusters]]\nmax_time_hours = -1", CLUSTER, "clusters.[1].max_time_hours: is -1; write a number of hours" ; "negative limit")]
#[test_case("[[clusters]]\nname = \"a\"\nuser = \"u\"\nhosts = [\"h\"]\n[[clusters]]\nname = \"a\"\nuser = \"u\"\nhosts = [\"h\"]", &[], "clusters.a.name: is the name of two clusters" ; "two of one name")]
fn a_fault_names_its_key_and_the_remedy(toml: &str, environment: &[(&str, &str)], expected: &str) {
    let found = faults(toml, environment);
    assert!(found.iter().any(|line| line.starts_with(expected)), "{found:#?}");
}

#[test]
fn images_of_networks_are_shown_as_they_were_read() {
    let toml = "[tao.images]\ndino = \"registry.example/tao/dino:1\"\n\"a b\" = \"/lustre/x.sqsh\"\n";
    let environment = [CLUSTER, &[("TAO_SLURM_TAO_IMAGE", "tao:2")]].concat();
    let config = read(toml, &environment).unwrap();
    let images = &config.container_images;
    assert_eq!(images.by_network["dino"].to_string(), "registry.example#tao/dino:1");
    assert_eq!(images.default.as_ref().unwrap().to_string(), "tao:2");
    let shown = render(&config.settings);
    let again = read(&shown, &[]).unwrap();
    assert_eq!(render(&again.settings), shown);
    assert_eq!(again.container_images.by_network.len(), 2);
}

#[test]
fn an_invalid_image_is_reported_with_its_network() {
    let [line] = faults("[tao.images]\ndino = \"a b\"", CLUSTER).try_into().unwrap();
    assert!(line.starts_with("tao.images.dino: "), "{line}");
}

#[test]
fn an_invalid_webhook_network_is_reported() {
    let config = read("[webhooks]\nallowed_networks = [\"10.1.0.0/16\"]", CLUSTER).unwrap();
    assert!(config.webhook_networks.allow("10.1.2.3".parse().unwrap()));
    let said =
        faults("[webhooks]\nallowed_networks = [\"10.1\"]\ntimeout = \"2m\"\nmax_attempts = 0", CLUSTER);
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said[2].starts_with("webhooks.allowed_networks: 10.1: a network is"), "{said:#?}");
}

#[test]
fn a_ca_file_must_hold_certificates() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let toml = format!("[webhooks]\nca_file = \"{}\"", file.path().display());
    let [line] = faults(&toml, CLUSTER).try_into().unwrap();
    let expected = format!("webhooks.ca_file: {}: contains no PEM certificate", file.path().display());
    assert!(line.starts_with(&expected), "{line}");
    let [line] = faults("[webhooks]\nca_file = \"/nowhere/ca.pem\"", CLUSTER).try_into().unwrap();
    assert!(line.starts_with("webhooks.ca_file: /nowhere/ca.pem: cannot be read (No such file"), "{line}");
}

#[test]
fn all_faults_are_reported_at_once() {
    let found = faults("[worker]\nbatch_size = 0\n[[clusters]]\nname = \"a\"\nsessions = 9", &[]);
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn without_home_the_data_directory_must_be_set() {
    let problems = load(&Overrides::default(), &Environment::of(&[])).unwrap_err();
    assert!(
        problems.lines()[0]
            .starts_with("data_dir (TAO_SLURM_DATA_DIR): has no default, because HOME is not set"),
        "{problems}"
    );
}

#[test]
fn the_example_file_is_what_the_declarations_say() {
    let file = include_str!("../../../../deploy/config.example.toml");
    assert!(file == example(), "run `make config-example`; it gives:\n{}", example());
}

#[test]
fn the_example_is_the_defaults() {
    let example = read(&example(), &[]).unwrap().settings;
    let environment = [
        ("HOME", "/home/t"),
        ("SLURM_CLUSTER_NAME", "dgx"),
        ("SLURM_USER", "svc-tao"),
        ("SLURM_HOSTNAME", "login1.example.org,login2.example.org:2222"),
    ];
    let defaults = load(&Overrides::default(), &Environment::of(&environment)).unwrap().settings;
    assert_eq!(render(&example), render(&defaults));
}

#[test]
fn every_commented_value_of_the_example_can_be_read() {
    let is_key = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
    let text = example();
    let lines = text.lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
    let all: Vec<_> = lines.filter(|line| line.starts_with('[') || is_key(line)).collect();
    let (_dir, path) = written(&all.join("\n"));
    let settings = sources::read(Some(&path), &Environment::of(&[])).unwrap();
    assert!(!render(&settings).contains("is not set"), "{}", render(&settings));
}

#[test]
fn the_kubernetes_configuration_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/k8s/config.yaml");
    let manifest = fs::read_to_string(path).unwrap();
    let (_, text) = manifest.split_once("  tao-slurm.toml: |\n").unwrap();
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    let environment = [("DATABASE_URL", "postgres://u@h/d"), ("HOME", "/var/lib/tao-slurm")];
    let config = read(&lines.join("\n"), &environment).unwrap();
    assert_eq!(config.clusters.len(), 1);
    assert_eq!(config.settings.secrets.key_file, Path::new("/keys/secrets.key"));
}

#[test]
fn the_shown_configuration_can_be_read_again_and_has_no_password() {
    let environment = [CLUSTER, &[("DATABASE_URL", "postgres://u:hunter2@h/d")]].concat();
    let config = read("", &environment).unwrap();
    let shown = render(&config.settings);
    assert!(shown.contains("url = \"postgres://u:***@h/d\""), "{shown}");
    assert!(!format!("{config:?}").contains("hunter2"));
    let again = read(&shown, &[]).unwrap();
    assert_eq!(render(&again.settings), shown);
}

#[test]
fn likely_problems_are_warnings_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let (key, known) = (dir.path().join("key"), dir.path().join("known_hosts"));
    fs::write(&key, "x").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&known, "login1 ssh-ed25519 AAAA\n").unwrap();
    let (key, known) = (key.display().to_string(), known.display().to_string());
    let environment =
        [CLUSTER, &[("SSH_KEY_PATH", key.as_str()), ("SSH_KNOWN_HOSTS", known.as_str())]].concat();
    let said = warnings(&load(&Overrides::default(), &Environment::of(&environment)).unwrap());
    assert_eq!(said[0], format!("cluster default: other users can read the key {key}; run: chmod 600 {key}"));
    assert!(said[1].contains("`ssh-keyscan -p 2222 login2`") && said[1].contains("fingerprint"), "{said:?}");
    assert_eq!(said.len(), 2);

    let without = load(&Overrides::default(), &Environment::of(&[("HOME", "/home/t")])).unwrap();
    assert!(warnings(&without)[0].starts_with("no cluster is configured"));
}

#[test]
fn unknown_jobs_are_canceled_only_if_the_cluster_says_so() {
    let of = |line: &str| {
        let toml = format!("[[clusters]]\nname = \"a\"\nuser = \"ua\"\nhosts = [\"ha\"]\n{line}");
        cluster(&read(&toml, &[]).unwrap()).cluster.retries.cancel_unknown_jobs
    };
    assert!(!of("") && of("cancel_unknown_jobs = true"));
}
